// A device library whose device is the CPU: the program of a warp, emulated, and a sort.
#pragma once

#include "device/library.h"

#include <atomic>
#include <cstdint>

namespace maxsimd::test {

/// There is one device, number 0.
const DeviceLibrary& emulatedLibrary();

struct EmulatedState {
  uint64_t memoryBytes = 1 << 30;
  std::atomic<bool> failing{false};
  /// A search takes so much longer.
  std::atomic<uint32_t> delayMs{0};
  /// Scores are a little off.
  std::atomic<bool> wrong{false};
  std::atomic<uint32_t> matrices{0};
  /// In one call.
  std::atomic<uint32_t> mostQueries{0};
};
extern EmulatedState emulatedState;

}  // namespace maxsimd::test
