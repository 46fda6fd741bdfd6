// Loops that threads share while tasks wait for a thread.
#include "runtime/pool.h"
#include "test/check.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace maxsimd::test {
namespace {

using namespace std::chrono_literals;

constexpr size_t iterations = 500;

/// Runs a loop in a pool of two threads and posts a task once both are in it. False if the second thread did not come.
bool taskBesideLoop() {
  std::atomic<size_t> ran{0};
  std::atomic<uint32_t> inside{0};
  std::atomic<bool> bothInside{false}, taskRan{false}, loopEnded{false}, taskWasFirst{false};
  Pool pool(2);
  pool.post([&] {
    pool.parallelFor(iterations, [&](size_t) {
      if (++inside == 2) bothInside = true;
      if (!taskRan) std::this_thread::sleep_for(1ms);
      --inside;
      ++ran;
    });
    loopEnded = true;
  });
  while (!bothInside && !loopEnded) std::this_thread::sleep_for(1ms);
  pool.post([&] {
    taskWasFirst = !loopEnded;
    taskRan = true;
  });
  while (!taskRan || !loopEnded) std::this_thread::sleep_for(1ms);
  CHECK(ran == iterations);
  CHECK(!bothInside || taskWasFirst);
  return bothInside;
}

const Case waiting("concurrency", "a task begins while all threads share a loop", [](Random&) {
  // Threads start with the first task, so the second may come too late for the loop.
  uint32_t tries = 0;
  while (!taskBesideLoop()) CHECK(++tries < 50);
});

}  // namespace
}  // namespace maxsimd::test
