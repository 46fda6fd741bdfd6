// When work must stop: at its deadline, or when the engine is closed. And when it must pause.
#pragma once

#include "files/error.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

namespace maxsimd {

using Clock = std::chrono::steady_clock;

struct Deadline {
  Clock::time_point at = Clock::time_point::max();
  const std::atomic<bool>* stopping = nullptr;
  /// The number of tasks that wait elsewhere; null = they do not matter. The work pauses while there are any.
  const std::atomic<size_t>* waiting = nullptr;

  bool passed() const {
    return (stopping != nullptr && stopping->load(std::memory_order_relaxed)) ||
           (at != Clock::time_point::max() && Clock::now() >= at);
  }

  /// Called between blocks of work. Throws `deadline_exceeded`.
  void check() const {
    while (waiting != nullptr && waiting->load(std::memory_order_relaxed) > 0 && !passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (passed()) throw Error(ErrorCode::deadlineExceeded, "deadline exceeded");
  }
};

inline double millisecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace maxsimd
