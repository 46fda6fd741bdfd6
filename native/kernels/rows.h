// How token vectors are stored: int8 components, or codes of 1, 2 or 4 bits, and one f16 scale a row.
//
//   value of component d = scale * component(d)
//   component(d)         = the int8 itself, or 2u - (2^bits - 1) for a code u of few bits: an odd number
//
// A row of few bits consists of strips of 32 codes, each 4 * bits bytes. Code d of a strip lies in byte d % (4 * bits), from
// bit bits * (d / (4 * bits)) on. So one shift and one mask unpack a register of codes in order. Codes behind `dim` are 0.
//
// An encoder rotates token vectors first and chooses the scale such that the product of a row with its own vector is exact:
// the estimator of RaBitQ (Gao et al., arXiv:2405.12497 and 2409.09913).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace maxsimd {

inline constexpr uint32_t stripCodes = 32;

/// The largest component of a code; components are -most, -most + 2, ..., most.
constexpr int32_t componentMost(uint32_t bits) { return (1 << bits) - 1; }

constexpr bool isRowBits(uint32_t bits) { return bits == 1 || bits == 2 || bits == 4 || bits == 8; }

/// Components of a vector, padded to whole strips.
constexpr size_t paddedComponents(size_t dim) { return (dim + stripCodes - 1) / stripCodes * stripCodes; }

/// Dimensions of token vectors, and the bits of a stored component.
struct RowShape {
  uint32_t dim;
  uint32_t bits;

  // NOLINTNEXTLINE(google-explicit-constructor): a number of dimensions is a shape of 8 bits.
  constexpr RowShape(uint32_t dimensions, uint32_t bitsOfRow = 8) : dim(dimensions), bits(bitsOfRow) {}

  /// How many bytes one row takes.
  constexpr size_t bytes() const { return bits == 8 ? dim : paddedComponents(dim) / 8 * bits; }
  bool operator==(const RowShape&) const = default;
};

/// The largest magnitude of some values, or what is no number if one of them is none. As integers, magnitudes have the
/// order that they have as numbers.
inline float largestMagnitude(const float* values, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}

/// Component d of a stored row.
inline int8_t componentOf(const int8_t* row, uint32_t bits, uint32_t d) {
  if (bits == 8) return row[d];
  const uint32_t width = stripCodes / 8 * bits;
  const uint32_t within = d % stripCodes;
  const auto byte = uint8_t(row[d / stripCodes * width + within % width]);
  const uint32_t code = byte >> (within / width * bits) & ((1u << bits) - 1);
  return int8_t(2 * int32_t(code) - componentMost(bits));
}

/// Writes the components of `rows` stored rows as int8 [rows x dim].
inline void unpackRows(const int8_t* stored, RowShape shape, size_t rows, int8_t* components) {
  if (shape.bits == 8) {
    std::memcpy(components, stored, rows * shape.bytes());
    return;
  }
  const uint32_t width = stripCodes / 8 * shape.bits;
  const int32_t most = componentMost(shape.bits);
  for (size_t row = 0; row < rows; ++row, stored += shape.bytes(), components += shape.dim) {
    // The codes first, first + 1, ... have the same bits of the bytes of their strip.
    for (uint32_t first = 0; first < shape.dim; first += width) {
      const int8_t* bytes = stored + first / stripCodes * width;
      const uint32_t shift = first % stripCodes / width * shape.bits, end = first + width;
      for (uint32_t d = first; d < end && d < shape.dim; ++d) {
        components[d] = int8_t(2 * (uint8_t(bytes[d - first]) >> shift & most) - most);
      }
    }
  }
}

}  // namespace maxsimd
