// Promises for work on the engine's own threads.
//
// One thread-safe function per engine carries finished work to the JavaScript thread. It is referenced while work is in
// flight, so that the process waits for results and for nothing else. When the environment ends (exit,
// worker.terminate()), a cleanup hook stops the threads. The hook is registered after the thread-safe function, so it
// runs before that one's own hook.
#pragma once

#include "device/residents.h"
#include "runtime/engine.h"

#include <napi.h>

#include <exception>
#include <functional>
#include <memory>

namespace maxsimd {

/// One promise. `execute` runs on a pool thread and touches no JavaScript. `result` runs on the JavaScript thread
/// afterwards. The subclass owns everything that either needs.
class AsyncWork {
 public:
  virtual ~AsyncWork() = default;
  virtual void execute() = 0;
  virtual Napi::Value result(Napi::Env env) = 0;

 private:
  friend class AsyncHub;
  napi_deferred deferred_ = nullptr;
  std::exception_ptr failure_;
};

/// An engine, its work in flight, and whether it is open.
class AsyncHub : public std::enable_shared_from_this<AsyncHub> {
 public:
  /// `residents`: null = no device.
  static std::shared_ptr<AsyncHub> create(Napi::Env env, std::unique_ptr<Engine> engine,
                                          std::unique_ptr<Residents> residents);

  bool open() const { return open_; }
  Engine& engine() { return *engine_; }
  /// Copies of segments in device memory; null = no device.
  Residents* residents() { return residents_.get(); }

  /// Runs the work on one of the engine's pools.
  Napi::Promise start(Napi::Env env, Pool& pool, std::shared_ptr<AsyncWork> work);
  /// A promise whose work the caller finishes from any thread, once, with `finish`.
  Napi::Promise begin(Napi::Env env, const std::shared_ptr<AsyncWork>& work);
  void finish(std::shared_ptr<AsyncWork> work, std::exception_ptr failure);

  /// Refuses new work. The threads end once the work in flight has settled. JavaScript thread only.
  void close();

 private:
  AsyncHub(std::unique_ptr<Engine> engine, std::unique_ptr<Residents> residents)
      : residents_(std::move(residents)), engine_(std::move(engine)) {}
  static void settle(napi_env env, napi_value function, void* context, void* data);
  static void cleanup(void* hub);
  void shutDown();

  /// Destroyed after the engine, whose threads use it.
  std::unique_ptr<Residents> residents_;
  std::unique_ptr<Engine> engine_;
  napi_env env_ = nullptr;
  napi_threadsafe_function function_ = nullptr;
  uint64_t inFlight_ = 0;
  bool open_ = true;
};

/// The JavaScript error of a C++ exception: `code`, and `errno` for io errors.
Napi::Error toJavaScript(Napi::Env env, const std::exception_ptr& failure);

}  // namespace maxsimd
