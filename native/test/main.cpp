// Runs the suites named on the command line (all without one). MAXSIMD_TEST_SEED repeats a run.
#include "test/check.h"

#include <chrono>
#include <cstring>
#include <vector>

namespace maxsimd::test {
namespace {

struct Entry {
  std::string suite;
  std::string name;
  std::function<void(Random&)> body;
};

std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

uint64_t seed = 0;

}  // namespace

Case::Case(const char* suite, const char* name, std::function<void(Random&)> body) {
  entries().push_back({suite, name, std::move(body)});
}

void fail(const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: %s (MAXSIMD_TEST_SEED=%llu)\n", file, line, message.c_str(),
               static_cast<unsigned long long>(seed));
  std::abort();
}

}  // namespace maxsimd::test

int main(int count, char** arguments) {
  using namespace maxsimd::test;
  const char* given = std::getenv("MAXSIMD_TEST_SEED");
  seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  int ran = 0;
  for (const Entry& entry : entries()) {
    bool wanted = count == 1;
    for (int a = 1; a < count; ++a) wanted = wanted || entry.suite == arguments[a];
    if (!wanted) continue;
    Random random(seed);
    const auto start = std::chrono::steady_clock::now();
    entry.body(random);
    const auto taken = std::chrono::steady_clock::now() - start;
    std::printf("%s: %s (%lld ms)\n", entry.suite.c_str(), entry.name.c_str(),
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()));
    std::fflush(stdout);
    ++ran;
  }
  std::printf("%d passed\n", ran);
  return ran > 0 ? 0 : 1;
}
