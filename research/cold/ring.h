// The few calls of io_uring that reading a batch needs, without liburing.
#pragma once

#include <cstdint>
#include <span>

namespace research {

struct Read {
  void* to;
  uint32_t bytes;
  uint64_t offset;
};

class Ring {
 public:
  static constexpr uint32_t entries = 2048;

  /// `usable` is false where the system has none or forbids it.
  Ring();
  ~Ring();
  bool usable() const { return descriptor_ >= 0; }
  /// Returns when all have been read; false if one of them failed or came short.
  bool readAll(int file, std::span<const Read> reads);

 private:
  int descriptor_;
  uint8_t* submissions_ = nullptr;
  uint8_t* completions_ = nullptr;
  void* queue_ = nullptr;
  struct Offsets {
    uint32_t tail, mask, array, completedHead, completedTail, completedMask, events;
  } at_{};
  size_t submissionBytes_ = 0, completionBytes_ = 0, queueBytes_ = 0;
};

}  // namespace research
