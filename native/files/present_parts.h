// Which parts of a file have come that is still being fetched: what has not come is a hole, which reads as zeros and must
// never be taken for content.
#pragma once

#include "files/error.h"

#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace maxsimd {

struct AbsentPart {
  /// Whose file it is part of.
  uint64_t fileId;
  uint32_t part;

  friend auto operator<=>(const AbsentPart&, const AbsentPart&) = default;
};

/// Bytes were needed that have not come. Nothing is wrong: once these parts are there, the same may be tried again.
class AbsentParts : public Error {
 public:
  explicit AbsentParts(std::vector<AbsentPart> parts);

  /// Ascending, each once.
  const std::vector<AbsentPart>& parts() const { return parts_; }

 private:
  std::vector<AbsentPart> parts_;
};

/// Parts are added while others ask; none is ever taken away.
class PresentParts {
 public:
  /// `bits`: one a part, the first in the lowest bit of the first byte; `invalid_argument` unless there are as many as parts.
  PresentParts(uint64_t fileId, uint64_t fileBytes, uint64_t partBytes, std::span<const uint8_t> bits);

  /// Those of `bits` are there now, too.
  void add(std::span<const uint8_t> bits);
  /// Adds what is missing of [offset, offset + bytes).
  void collectAbsent(uint64_t offset, uint64_t bytes, std::vector<AbsentPart>& absent) const;
  /// Throws `AbsentParts` if something of [offset, offset + bytes) is missing.
  void require(uint64_t offset, uint64_t bytes) const;

 private:
  bool has(uint64_t part) const { return presence_[part / 8].load(std::memory_order_acquire) >> part % 8 & 1; }

  const uint64_t fileId_;
  const uint64_t partBytes_;
  const uint64_t parts_;
  std::unique_ptr<std::atomic<uint8_t>[]> presence_;
  /// Parts that are missing.
  std::atomic<uint64_t> left_;
};

}  // namespace maxsimd
