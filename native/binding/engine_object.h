// The JavaScript class `Engine` (src/index/engine/native.ts).
#pragma once

#include "binding/async_work.h"

#include <napi.h>

#include <memory>

namespace maxsimd {

/// Per-environment state: the constructors of handles that JavaScript cannot make by itself.
struct EnvironmentData {
  Napi::FunctionReference indexConstructor;
  Napi::FunctionReference searchConstructor;
};

class EngineObject : public Napi::ObjectWrap<EngineObject> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit EngineObject(const Napi::CallbackInfo& info);
  ~EngineObject() override;

 private:
  Napi::Value info(const Napi::CallbackInfo& info);
  Napi::Value memory(const Napi::CallbackInfo& info);
  Napi::Value memoryOwners(const Napi::CallbackInfo& info);
  Napi::Value device(const Napi::CallbackInfo& info);
  Napi::Value createIndex(const Napi::CallbackInfo& info);
  Napi::Value score(const Napi::CallbackInfo& info);
  Napi::Value kernelCalls(const Napi::CallbackInfo& info);
  Napi::Value timeKernel(const Napi::CallbackInfo& info);
  Napi::Value inspectSegment(const Napi::CallbackInfo& info);
  Napi::Value inspectCodes(const Napi::CallbackInfo& info);
  Napi::Value inspectPostings(const Napi::CallbackInfo& info);
  Napi::Value inspectColumn(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);
  AsyncHub& requireOpen() const;

  std::shared_ptr<AsyncHub> hub_;
};

}  // namespace maxsimd
