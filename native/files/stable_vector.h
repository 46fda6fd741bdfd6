// A growing array whose elements never move. One writer appends while readers read elements that they know to exist.
// Blocks double in size, so that a small index stays small and a large one has few blocks.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace maxsimd {

template <typename T>
class StableVector {
 public:
  StableVector() = default;
  ~StableVector() {
    for (auto& block : blocks_) delete[] block.load(std::memory_order_relaxed);
  }
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;

  /// Creates all elements below `count`, value-initialised. One writer at a time.
  void grow(uint32_t count) {
    if (count == 0) return;
    for (uint32_t b = 0; b <= blockOf(count - 1); ++b) {
      if (blocks_[b].load(std::memory_order_relaxed) == nullptr) {
        blocks_[b].store(new T[size_t(firstBlock) << b](), std::memory_order_release);
      }
    }
  }

  /// Bytes of `count` elements.
  static uint64_t bytesFor(uint32_t count) {
    return count == 0 ? 0 : ((uint64_t(firstBlock) << (blockOf(count - 1) + 1)) - firstBlock) * sizeof(T);
  }

  T& operator[](uint32_t index) { return *at(index); }
  const T& operator[](uint32_t index) const { return *at(index); }

 private:
  static constexpr uint32_t firstBlock = 64;

  static uint32_t blockOf(uint32_t index) {
    return uint32_t(std::bit_width((uint64_t(index) + firstBlock) / firstBlock)) - 1;
  }

  T* at(uint32_t index) const {
    const uint32_t block = blockOf(index);
    const uint64_t start = (uint64_t(firstBlock) << block) - firstBlock;
    return blocks_[block].load(std::memory_order_acquire) + (index - start);
  }

  std::array<std::atomic<T*>, 27> blocks_{};
};

}  // namespace maxsimd
