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

void until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(1ms);
}

/// Runs a loop in a pool of two threads and posts a task once both are in it. The loop's own thread then waits for the
/// task, so only the helper can run it. False if the helper did not come before the loop ended.
bool taskBesideLoop(Pool& pool) {
  std::atomic<size_t> ran{0}, helped{0}, helpedBeforeTask{0};
  std::atomic<bool> helperInside{false}, posted{false}, taskRan{false}, loopEnded{false};
  pool.post([&] {
    const auto owner = std::this_thread::get_id();
    pool.parallelFor(iterations, [&](size_t) {
      if (std::this_thread::get_id() != owner) {
        ++helped;
        helperInside = true;
        until(posted);
      } else if (helperInside) {
        until(taskRan);
      } else {
        std::this_thread::sleep_for(1ms);
      }
      ++ran;
    });
    loopEnded = true;
  });
  while (!helperInside && !loopEnded) std::this_thread::sleep_for(1ms);
  if (helperInside) {
    pool.post([&] {
      helpedBeforeTask = helped.load();
      taskRan = true;
    });
    posted = true;
    until(taskRan);
    // The helper left the loop after the iteration that it was in.
    CHECK(helpedBeforeTask == 1);
  }
  until(loopEnded);
  CHECK(ran == iterations);
  return helperInside;
}

const Case waiting("concurrency", "a task begins while all threads share a loop", [](Random&) {
  Pool pool(2);
  // Threads start with the first task. The second one may come too late for a loop, but then it is there for a later one.
  while (!taskBesideLoop(pool)) continue;
});

}  // namespace
}  // namespace maxsimd::test
