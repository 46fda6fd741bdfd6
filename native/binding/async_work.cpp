#include "binding/async_work.h"

#include "files/error.h"
#include "files/present_parts.h"

#include <new>

namespace maxsimd {

Napi::Error toJavaScript(Napi::Env env, const std::exception_ptr& failure) {
  const auto coded = [env](const char* message, ErrorCode code, int errnoValue) {
    Napi::Error error = Napi::Error::New(env, message);
    error.Set("code", Napi::String::New(env, errorCodeName(code)));
    if (errnoValue != 0) error.Set("errno", Napi::Number::New(env, errnoValue));
    return error;
  };
  try {
    std::rethrow_exception(failure);
  } catch (const Napi::Error& error) {
    return error;
  } catch (const UnreadRecord& error) {
    Napi::Error unread = coded(error.what(), error.code(), error.errnoValue());
    unread.Set("segmentId", Napi::Number::New(env, double(error.segmentId())));
    unread.Set("record", Napi::Number::New(env, error.record()));
    return unread;
  } catch (const AbsentParts& error) {
    Napi::Error absent = coded(error.what(), error.code(), 0);
    const size_t count = error.parts().size();
    auto segmentIds = Napi::Float64Array::New(env, count);
    auto parts = Napi::Uint32Array::New(env, count);
    for (size_t i = 0; i < count; ++i) {
      segmentIds[i] = double(error.parts()[i].fileId);
      parts[i] = error.parts()[i].part;
    }
    absent.Set("segmentIds", segmentIds);
    absent.Set("parts", parts);
    return absent;
  } catch (const Error& error) {
    return coded(error.what(), error.code(), error.errnoValue());
  } catch (const std::bad_alloc&) {
    return coded("out of memory", ErrorCode::io, ENOMEM);
  } catch (const std::exception& error) {
    return Napi::Error::New(env, error.what());
  }
}

std::shared_ptr<AsyncHub> AsyncHub::create(Napi::Env env, std::unique_ptr<Engine> engine,
                                           std::unique_ptr<Residents> residents) {
  std::shared_ptr<AsyncHub> hub(new AsyncHub(std::move(engine), std::move(residents)));
  hub->env_ = env;
  auto* context = new std::shared_ptr<AsyncHub>(hub);
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<std::shared_ptr<AsyncHub>*>(data); };
  const napi_status status = napi_create_threadsafe_function(env, nullptr, nullptr, Napi::String::New(env, "maxsimd"),
                                                             0, 1, context, finalize, context, settle, &hub->function_);
  if (status != napi_ok) {
    delete context;
    throw Napi::Error::New(env, "cannot create a thread-safe function");
  }
  napi_unref_threadsafe_function(env, hub->function_);
  napi_add_env_cleanup_hook(env, cleanup, hub.get());
  return hub;
}

Napi::Promise AsyncHub::begin(Napi::Env env, const std::shared_ptr<AsyncWork>& work) {
  napi_value promise;
  if (napi_create_promise(env, &work->deferred_, &promise) != napi_ok) {
    throw Napi::Error::New(env, "cannot create a promise");
  }
  if (inFlight_++ == 0) napi_ref_threadsafe_function(env, function_);
  return Napi::Promise(env, promise);
}

Napi::Promise AsyncHub::start(Napi::Env env, Pool& pool, std::shared_ptr<AsyncWork> work) {
  Napi::Promise promise = begin(env, work);
  pool.post([this, work = std::move(work)]() mutable {
    std::exception_ptr failure;
    try {
      work->execute();
    } catch (...) {
      failure = std::current_exception();
    }
    finish(std::move(work), failure);
  });
  return promise;
}

void AsyncHub::finish(std::shared_ptr<AsyncWork> work, std::exception_ptr failure) {
  work->failure_ = std::move(failure);
  auto* data = new std::shared_ptr<AsyncWork>(std::move(work));
  if (napi_call_threadsafe_function(function_, data, napi_tsfn_nonblocking) != napi_ok) delete data;
}

void AsyncHub::settle(napi_env env, napi_value, void* context, void* data) {
  const std::unique_ptr<std::shared_ptr<AsyncWork>> holder(static_cast<std::shared_ptr<AsyncWork>*>(data));
  if (env == nullptr) return;  // the environment is going: nobody waits
  AsyncWork& work = **holder;
  const std::shared_ptr<AsyncHub> hub = *static_cast<std::shared_ptr<AsyncHub>*>(context);
  const Napi::HandleScope scope(env);
  std::exception_ptr failure = work.failure_;
  if (!failure) {
    try {
      const Napi::Value value = work.result(env);
      napi_resolve_deferred(env, work.deferred_, value);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (failure) napi_reject_deferred(env, work.deferred_, toJavaScript(env, failure).Value());
  if (--hub->inFlight_ == 0) {
    napi_unref_threadsafe_function(env, hub->function_);
    if (!hub->open_) hub->shutDown();
  }
}

void AsyncHub::close() {
  if (!open_) return;
  open_ = false;
  if (inFlight_ == 0) shutDown();
}

void AsyncHub::shutDown() {
  if (engine_ == nullptr) return;
  engine_.reset();
  residents_.reset();
  napi_remove_env_cleanup_hook(env_, cleanup, this);
  napi_release_threadsafe_function(function_, napi_tsfn_release);
}

void AsyncHub::cleanup(void* data) {
  auto* hub = static_cast<AsyncHub*>(data);
  hub->open_ = false;
  if (hub->engine_ == nullptr) return;
  hub->engine_->stopping = true;
  hub->engine_.reset();
  hub->residents_.reset();
}

}  // namespace maxsimd
