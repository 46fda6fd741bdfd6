// The addon's entry: one class, `Engine`; indexes come from it.
#include "binding/engine_object.h"

#include <napi.h>

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  maxsimd::EngineObject::define(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(maxsimd, initialise)
