// Functions of the addon that belong to no class.
#pragma once

#include <napi.h>

namespace maxsimd {

/// Functions that make rows of few bits. An encoder calls them (src/encoder/inference/few-bits.ts).
void defineRowFunctions(Napi::Env env, Napi::Object exports);

/// Core files of this process.
void defineCoreDumps(Napi::Env env, Napi::Object exports);

}  // namespace maxsimd
