// A pool of threads. They run posted tasks in order of arrival, and idle ones share loops.
#pragma once

#include "runtime/deadline.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace maxsimd {

class Pool {
 public:
  /// Threads start with the first task. Threads with `niceness` > 0 give way to other threads (Linux: per thread).
  explicit Pool(uint32_t threads, int niceness = 0);
  /// Drops tasks that have not started and waits for those that have.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  uint32_t threads() const { return threadCount_; }
  void post(std::function<void()> task);

  /// Runs body(0), ..., body(count - 1), each once, on the calling thread and on threads that are idle now. Those leave
  /// the loop when a task is posted. Returns when all iterations are done. Rethrows the first exception; after it no
  /// further iteration starts.
  void parallelFor(size_t count, const std::function<void(size_t)>& body);
  /// The same, but no iteration starts once `until` has passed, except that the first always does. Returns how many are
  /// done: they are the first ones.
  size_t parallelFor(size_t count, Clock::time_point until, const std::function<void(size_t)>& body);

 private:
  void run();

  const uint32_t threadCount_;
  const int niceness_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  /// Shares of loops in progress.
  std::deque<std::function<void()>> helpers_;
  /// The size of `tasks_`, readable without the lock.
  std::atomic<size_t> waiting_{0};
  std::vector<std::thread> workers_;
  uint32_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace maxsimd
