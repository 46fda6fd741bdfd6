// The codes of a chunk as they stand in a file: little-endian, 2 or 3 bytes each (codes/codes.h). Both widths are read
// as four bytes and masked. So at least two readable bytes must follow the last code, and no code is above the mask,
// whatever the file holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace maxsimd {

struct CodeSpan {
  const uint8_t* first;
  uint32_t count;
  /// Bytes of one code.
  uint32_t bytes;

  uint32_t at(uint32_t place, uint32_t codeMask) const {
    uint32_t code;
    std::memcpy(&code, first + size_t(place) * bytes, sizeof code);
    return code & codeMask;
  }
  size_t sizeBytes() const { return size_t(count) * bytes; }
};

}  // namespace maxsimd
