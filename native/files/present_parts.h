// Which parts of a file have been fetched so far. A missing part is a hole. It reads as zeros and must never be used as
// content.
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
  /// The segment whose file it is a part of.
  uint64_t fileId;
  uint32_t part;

  friend auto operator<=>(const AbsentPart&, const AbsentPart&) = default;
};

/// Bytes are missing. Nothing is wrong: once these parts are there, the same call may be repeated.
class AbsentParts : public Error {
 public:
  explicit AbsentParts(std::vector<AbsentPart> parts);

  /// Ascending, without duplicates.
  const std::vector<AbsentPart>& parts() const { return parts_; }

 private:
  std::vector<AbsentPart> parts_;
};

/// Parts are added while other threads ask. None is ever removed.
class PresentParts {
 public:
  /// `bits`: one bit a part, the first part in the lowest bit of the first byte. `invalid_argument` unless it has a bit
  /// for each part.
  PresentParts(uint64_t fileId, uint64_t fileBytes, uint64_t partBytes, std::span<const uint8_t> bits);

  /// Marks the parts of `bits` as fetched.
  void add(std::span<const uint8_t> bits);
  /// Appends the missing parts of [offset, offset + bytes) to `absent`.
  void collectAbsent(uint64_t offset, uint64_t bytes, std::vector<AbsentPart>& absent) const;
  /// Throws `AbsentParts` if a part of [offset, offset + bytes) is missing.
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
