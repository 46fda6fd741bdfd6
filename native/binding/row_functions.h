// Functions of the addon that make rows of few bits. An encoder calls them (src/encoder/inference/few-bits.ts).
#pragma once

#include <napi.h>

namespace maxsimd {

void defineRowFunctions(Napi::Env env, Napi::Object exports);

}  // namespace maxsimd
