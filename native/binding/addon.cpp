// The addon's entry. It exports the class `Engine`, which makes the index handles, and functions that make rows.
#include "binding/engine_object.h"
#include "binding/row_functions.h"

#include <napi.h>

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  maxsimd::EngineObject::define(env, exports);
  maxsimd::defineRowFunctions(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(maxsimd, initialise)
