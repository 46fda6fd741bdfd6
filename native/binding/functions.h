// Functions of the addon that belong to no class.
#pragma once

#include <napi.h>

namespace maxsimd {

/// Functions that make stored rows. An encoder calls them (src/encoder/inference/rows.ts).
void defineRowFunctions(Napi::Env env, Napi::Object exports);

/// Core files of this process.
void defineCoreDumps(Napi::Env env, Napi::Object exports);

}  // namespace maxsimd
