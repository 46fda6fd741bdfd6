// Conversion between IEEE 754 binary16 and binary32 without special instructions. Widening is exact, narrowing rounds
// to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace maxsimd {

inline float halfToFloat(uint16_t bits) {
  // Multiplying by 2^112 corrects the exponent and normalises subnormals, exactly.
  const uint32_t magnitude = uint32_t(bits & 0x7fff) << 13;
  float value = std::bit_cast<float>(magnitude) * std::bit_cast<float>(uint32_t(0x77800000));
  if ((bits & 0x7c00) == 0x7c00) value = std::bit_cast<float>(magnitude | 0x7f800000u);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | uint32_t(bits & 0x8000) << 16);
}

inline uint16_t floatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x47800000) return sign | 0x7c00;  // 2^16 and up
  if (magnitude < 0x38800000) {                       // below 2^-14: subnormal or zero
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;  // 0.5 has ulp 2^-24, that of subnormal halves
    return sign | uint16_t(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | uint16_t((rounded - 0x38000000) >> 13);  // a carry into 2^16 gives infinity, as it must
}

/// Neither infinity nor NaN.
inline bool halfIsFinite(uint16_t bits) { return (bits & 0x7c00) != 0x7c00; }

}  // namespace maxsimd
