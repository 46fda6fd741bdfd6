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

const Case parted("concurrency", "a loop whose time is over has done its first iterations, one at least",
                  [](Random& random) {
                    Pool pool(3);
                    pool.post([] {});
                    for (int round = 0; round < rounds(50); ++round) {
                      const size_t count = between(random, 1, 400);
                      const auto time = std::chrono::microseconds(between(random, 0, 3) * 40);
                      std::vector<std::atomic<int>> ran(count);
                      const size_t done = pool.parallelFor(count, Clock::now() + time, [&](size_t i) {
                        ++ran[i];
                        std::this_thread::sleep_for(1us);
                      });
                      CHECK(done >= 1 && done <= count);
                      for (size_t i = 0; i < count; ++i) CHECK(ran[i] == (i < done ? 1 : 0));
                    }
                    CHECK(pool.parallelFor(0, Clock::now(), [](size_t) {}) == 0);
                  });

}  // namespace
}  // namespace maxsimd::test
