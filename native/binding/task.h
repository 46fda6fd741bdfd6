// Asynchronous work as two functions: one runs on a pool thread, the other turns its outcome into JavaScript.
#pragma once

#include "binding/async_work.h"

#include <optional>
#include <type_traits>
#include <utility>

namespace maxsimd {

template <typename Execute, typename Result>
class Task final : public AsyncWork {
 public:
  Task(Execute execute, Result result) : execute_(std::move(execute)), result_(std::move(result)) {}

  void execute() override { outcome_.emplace(execute_()); }
  Napi::Value result(Napi::Env env) override { return result_(env, *outcome_); }

 private:
  Execute execute_;
  Result result_;
  std::optional<std::invoke_result_t<Execute&>> outcome_;
};

template <typename Execute, typename Result>
std::shared_ptr<AsyncWork> makeTask(Execute execute, Result result) {
  return std::make_shared<Task<Execute, Result>>(std::move(execute), std::move(result));
}

/// For work without an outcome.
template <typename Execute>
std::shared_ptr<AsyncWork> makeTask(Execute execute) {
  auto run = [execute = std::move(execute)]() mutable {
    execute();
    return true;
  };
  return makeTask(std::move(run), [](Napi::Env env, bool&) { return env.Undefined(); });
}

/// Runs a method's body and turns a C++ exception into a JavaScript error.
template <typename Body>
Napi::Value guarded(Napi::Env env, Body body) {
  try {
    return body();
  } catch (...) {
    throw toJavaScript(env, std::current_exception());
  }
}

}  // namespace maxsimd
