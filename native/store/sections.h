// The building blocks of all files of the store: headers of 64 bytes with a checksum, and sections at multiples of 64.
//
// The sizes in a file are not trusted, even if a checksum covers them. A reader bounds the counts of a header, so that
// sums of their products fit into 64 bits, and reads sections only through `section`.
#pragma once

#include "files/crc32c.h"
#include "files/error.h"
#include "store/format.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace maxsimd {

/// The CRC-32C of the bytes after magic, version and the checksum itself.
template <typename Header>
uint32_t headerChecksum(const Header& header) {
  constexpr size_t start = 16;
  static_assert(sizeof header == 64);
  return crc32c(reinterpret_cast<const uint8_t*>(&header) + start, sizeof header - start);
}

template <typename T>
uint32_t checksumOf(std::span<const T> values) {
  return crc32c(values.data(), values.size_bytes());
}

template <typename T>
void putSection(std::vector<uint8_t>& body, uint64_t offset, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(body.data() + offset, values.data(), values.size() * sizeof(T));
}

/// Collects sections for writing, one after the other, without a copy. The values that were added must stay alive.
class SectionParts {
 public:
  template <typename T>
  void add(std::span<const T> values) {
    static constexpr uint8_t zeros[sectionAlignment] = {};
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes());
    for (const auto part : {bytes, std::span(zeros, alignSection(bytes.size()) - bytes.size())}) {
      parts_.push_back(part);
      bytes_ += part.size();
      checksum_ = crc32c(part.data(), part.size(), checksum_);
    }
  }
  uint64_t bytes() const { return bytes_; }
  /// The CRC-32C of everything added since the last call.
  uint32_t takeChecksum() { return std::exchange(checksum_, 0); }
  const std::vector<std::span<const uint8_t>>& parts() const { return parts_; }

 private:
  std::vector<std::span<const uint8_t>> parts_;
  uint64_t bytes_ = 0;
  uint32_t checksum_ = 0;
};

/// `count` values at `offset`, which is a multiple of their size. Throws `corrupt` if they are not all within `body`.
template <typename T>
std::span<const T> section(std::span<const uint8_t> body, uint64_t offset, uint64_t count) {
  if (offset > body.size() || count > (body.size() - offset) / sizeof(T)) {
    throw Error(ErrorCode::corrupt, "a section lies outside its file");
  }
  return {reinterpret_cast<const T*>(body.data() + offset), count};
}

}  // namespace maxsimd
