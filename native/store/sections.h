// What all files of the store are made of: headers of 64 bytes with a checksum, and sections at multiples of 64.
#pragma once

#include "store/crc32c.h"
#include "store/format.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace maxsimd {

/// crc32c of what follows magic, version and the checksum itself.
template <typename Header>
uint32_t headerChecksum(const Header& header) {
  constexpr size_t start = 16;
  static_assert(sizeof header == 64);
  return crc32c(reinterpret_cast<const uint8_t*>(&header) + start, sizeof header - start);
}

template <typename T>
void putSection(std::vector<uint8_t>& body, uint64_t offset, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(body.data() + offset, values.data(), values.size() * sizeof(T));
}

template <typename T>
std::span<const T> section(const uint8_t* body, uint64_t offset, size_t count) {
  return {reinterpret_cast<const T*>(body + offset), count};
}

}  // namespace maxsimd
