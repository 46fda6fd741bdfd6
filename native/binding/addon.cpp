// The addon's entry. It exports one class, `Engine`, which makes the index handles.
#include "binding/engine_object.h"

#include <napi.h>

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  maxsimd::EngineObject::define(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(maxsimd, initialise)
