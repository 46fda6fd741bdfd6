#include "binding/functions.h"

#include <sys/resource.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace maxsimd {
namespace {

/// The limit alone is not enough on Linux: a program that `core_pattern` names gets the memory whatever the limit is. A
/// process that is not dumpable gives it to none. Both last until the process runs another program.
Napi::Value forbidCoreDumps(const Napi::CallbackInfo& info) {
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = 0;
  setrlimit(RLIMIT_CORE, &limit);
#if defined(__linux__)
  prctl(PR_SET_DUMPABLE, 0);
#endif
  return info.Env().Undefined();
}

}  // namespace

void defineCoreDumps(Napi::Env env, Napi::Object exports) {
  exports.Set("forbidCoreDumps", Napi::Function::New(env, forbidCoreDumps, "forbidCoreDumps"));
}

}  // namespace maxsimd
