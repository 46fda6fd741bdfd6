// A minimal test harness: suites of named cases, a seed that is printed, and checks that end the process.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

namespace maxsimd::test {

using Random = std::mt19937_64;

/// Registers a case; `body` gets a generator seeded with the run's seed.
struct Case {
  Case(const char* suite, const char* name, std::function<void(Random&)> body);
};

[[noreturn]] void fail(const char* file, int line, const std::string& message);

inline uint32_t between(Random& random, uint32_t least, uint32_t most) {
  return least + uint32_t(random() % (uint64_t(most) - least + 1));
}

/// Rounds of a random test: `most`, or the share MAXSIMD_TEST_SHARE (0..1) of it, for runs under emulation.
inline int rounds(int most) {
  const char* share = std::getenv("MAXSIMD_TEST_SHARE");
  const int wanted = share == nullptr ? most : int(most * std::strtod(share, nullptr));
  return wanted > 0 ? wanted : 1;
}

/// A fresh directory. It is removed with its content at the end of the case.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace maxsimd::test

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) maxsimd::test::fail(__FILE__, __LINE__, #condition); \
  } while (false)

/// Expects an `Error` of the given code.
#define CHECK_ERROR(expression, expected)                                                    \
  do {                                                                                       \
    bool thrown = false;                                                                     \
    try {                                                                                    \
      (void)(expression);                                                                    \
    } catch (const maxsimd::Error& error) {                                                  \
      thrown = true;                                                                         \
      if (error.code() != (expected)) maxsimd::test::fail(__FILE__, __LINE__, error.what()); \
    }                                                                                        \
    if (!thrown) maxsimd::test::fail(__FILE__, __LINE__, #expression " did not throw");      \
  } while (false)
