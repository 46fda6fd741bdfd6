// The addon's entry. It exports the class `Engine`, which makes the index handles, functions that make rows, and one that
// forbids core files.
#include "binding/engine_object.h"
#include "binding/functions.h"

#include <napi.h>

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  maxsimd::EngineObject::define(env, exports);
  maxsimd::defineRowFunctions(env, exports);
  maxsimd::defineCoreDumps(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(maxsimd, initialise)
