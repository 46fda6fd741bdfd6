// Runs one target under libFuzzer, the one that the build names.
#include "test/fuzz/targets.h"

namespace maxsimd::test {

void fail(const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message.c_str());
  std::abort();
}

}  // namespace maxsimd::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  maxsimd::test::MAXSIMD_FUZZ_TARGET({bytes, count});
  return 0;
}
