#include "runtime/pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>

#if defined(__linux__)
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace maxsimd {
namespace {

/// One loop. Helpers that come late find it finished and do not touch its body.
struct Loop {
  std::atomic<size_t> next{0};
  size_t count;
  Clock::time_point until;
  const std::function<void(size_t)>* body;
  std::mutex mutex;
  std::condition_variable left;
  uint32_t helpers = 0;
  bool finished = false;
  std::exception_ptr failure;

  /// Takes iterations until none is left, the time has passed or `leave` returns true.
  template <typename Leave>
  void work(const Leave& leave) {
    try {
      while (!leave()) {
        if (until != Clock::time_point::max() && Clock::now() >= until && next.load(std::memory_order_relaxed) > 0)
          return;
        const size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        (*body)(i);
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  /// Helps until the loop is done or a task waits for a thread. The loop still has its own thread.
  void help(const std::atomic<size_t>& waiting) {
    {
      const std::lock_guard lock(mutex);
      if (finished) return;
      ++helpers;
    }
    work([&waiting] { return waiting.load(std::memory_order_relaxed) > 0; });
    const std::lock_guard lock(mutex);
    if (--helpers == 0) left.notify_all();
  }
};

}  // namespace

Pool::Pool(uint32_t threads, int niceness) : threadCount_(threads), niceness_(niceness) {}

Pool::~Pool() {
  std::deque<std::function<void()>> dropped, droppedHelpers;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
    droppedHelpers.swap(helpers_);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    waiting_.store(tasks_.size(), std::memory_order_relaxed);
    while (workers_.size() < threadCount_) workers_.emplace_back([this] { run(); });
  }
  wake_.notify_one();
}

void Pool::run() {
#if defined(__linux__)
  // `top -H` and the capacity benchmark tell the engine's threads from the event loop by this name.
  pthread_setname_np(pthread_self(), "maxsimd-engine");
  if (niceness_ > 0) setpriority(PRIO_PROCESS, id_t(syscall(SYS_gettid)), niceness_);
#endif
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || !helpers_.empty() || !tasks_.empty(); });
    --idle_;
    if (stopping_) return;
    // Helpers come first: a search in progress ends before a new one starts.
    std::deque<std::function<void()>>& from = helpers_.empty() ? tasks_ : helpers_;
    std::function<void()> task = std::move(from.front());
    from.pop_front();
    waiting_.store(tasks_.size(), std::memory_order_relaxed);
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

void Pool::parallelFor(size_t count, const std::function<void(size_t)>& body) {
  parallelFor(count, Clock::time_point::max(), body);
}

size_t Pool::parallelFor(size_t count, Clock::time_point until, const std::function<void(size_t)>& body) {
  auto loop = std::make_shared<Loop>();
  loop->count = count;
  loop->until = until;
  loop->body = &body;
  if (count > 1) {
    size_t helpers = 0;
    {
      const std::lock_guard lock(mutex_);
      const size_t asked = tasks_.size() + helpers_.size();
      const size_t free = idle_ > asked ? idle_ - asked : 0;
      helpers = stopping_ ? 0 : std::min(free, count - 1);
      for (size_t h = 0; h < helpers; ++h) helpers_.push_back([this, loop] { loop->help(waiting_); });
    }
    for (size_t h = 0; h < helpers; ++h) wake_.notify_one();
  }
  loop->work([] { return false; });
  std::unique_lock lock(loop->mutex);
  loop->finished = true;
  loop->left.wait(lock, [&loop] { return loop->helpers == 0; });
  if (loop->failure) std::rethrow_exception(loop->failure);
  return std::min(loop->next.load(std::memory_order_relaxed), count);
}

}  // namespace maxsimd
