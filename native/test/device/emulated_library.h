// A device library whose device is the CPU: it emulates the program of a warp, and sorts.
#pragma once

#include "device/library.h"

#include <atomic>
#include <cstdint>

namespace maxsimd::test {

/// The only device is number 0.
const DeviceLibrary& emulatedLibrary();

struct EmulatedState {
  uint64_t memoryBytes = 1 << 30;
  std::atomic<bool> failing{false};
  /// Searches begin, and wait until this is false.
  std::atomic<bool> held{false};
  /// Searches that have begun and not ended.
  std::atomic<uint32_t> searching{0};
  /// Makes scores slightly wrong.
  std::atomic<bool> wrong{false};
  std::atomic<uint32_t> matrices{0};
  /// The most queries of one call.
  std::atomic<uint32_t> mostQueries{0};
};
extern EmulatedState emulatedState;

}  // namespace maxsimd::test
