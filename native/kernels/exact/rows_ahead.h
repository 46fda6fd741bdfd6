// The rows that a kernel will multiply soon. Chunks may lie anywhere in memory, so the processor cannot guess the next
// one.
#pragma once

#include "kernels/contract.h"

#include <cstddef>
#include <cstdint>

namespace maxsimd {
namespace {

/// Goes through the blocks of all chunks, a fixed number of bytes ahead of the kernel. Prefetches scales with the first
/// block of their chunk. The kernel prefetches the rows, between its multiplications if it can.
class RowsAhead {
 public:
  RowsAhead(const Chunk* chunks, size_t count, size_t rowBytes, uint32_t blockRows, size_t bytes)
      : chunk_(chunks), last_(chunks + count - 1), rowBytes_(rowBytes), blockRows_(blockRows) {
    for (size_t ahead = 0; ahead < bytes; ahead += blockRows * rowBytes) advance();
  }

  /// Where the block begins. It may be short, and nothing may be read past the last one.
  const int8_t* rows() const { return chunk_->vectors + first_ * rowBytes_; }
  uint32_t count() const { return first_ < chunk_->rows ? chunk_->rows - first_ : 0; }

  void advance() {
    if (first_ < chunk_->rows) first_ += blockRows_;
    if (first_ < chunk_->rows || chunk_ == last_) return;
    ++chunk_;
    first_ = 0;
    const auto* scales = reinterpret_cast<const char*>(chunk_->scales);
    for (size_t at = 0; at < size_t(chunk_->rows) * sizeof(uint16_t); at += 64) __builtin_prefetch(scales + at);
  }

 private:
  const Chunk* chunk_;
  const Chunk* const last_;
  const size_t rowBytes_;
  const uint32_t blockRows_;
  uint32_t first_ = 0;
};

}  // namespace
}  // namespace maxsimd
