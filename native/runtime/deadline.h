// When work must stop: at its deadline, or when the engine is closed.
#pragma once

#include "files/error.h"

#include <atomic>
#include <chrono>
#include <cstddef>

namespace maxsimd {

using Clock = std::chrono::steady_clock;

struct Deadline {
  Clock::time_point at = Clock::time_point::max();
  const std::atomic<bool>* stopping = nullptr;

  bool passed() const {
    return (stopping != nullptr && stopping->load(std::memory_order_relaxed)) ||
           (at != Clock::time_point::max() && Clock::now() >= at);
  }

  /// Called between blocks of work. Throws `deadline_exceeded`.
  void check() const {
    if (passed()) throw Error(ErrorCode::deadlineExceeded, "deadline exceeded");
  }
};

inline double millisecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace maxsimd
