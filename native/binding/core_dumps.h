// Core files of this process.
#pragma once

#include <napi.h>

namespace maxsimd {

void defineCoreDumps(Napi::Env env, Napi::Object exports);

}  // namespace maxsimd
