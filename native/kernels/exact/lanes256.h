// The part of `Ops` (lanes.h) that kernels of 256-bit registers share: all but the elements and their multiplication.
#pragma once

#include "kernels/exact/lanes.h"

namespace maxsimd {
namespace {

/// Twice each code of a strip, as bytes in order.
template <uint32_t rowBits>
TARGET_INLINE __m256i twiceCodes256(const int8_t* from) {
  __m256i codes;
  if constexpr (rowBits == 4) {
    codes = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    codes = _mm256_srlv_epi64(codes, _mm256_setr_epi64x(0, 0, 4, 4));
  } else if constexpr (rowBits == 2) {
    int64_t bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    codes = _mm256_srlv_epi64(_mm256_set1_epi64x(bytes), _mm256_setr_epi64x(0, 2, 4, 6));
  } else {
    int32_t bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    codes = _mm256_srlv_epi32(_mm256_set1_epi32(bytes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  codes = _mm256_and_si256(codes, _mm256_set1_epi8(componentMost(rowBits)));
  return _mm256_add_epi8(codes, codes);
}

struct Lanes256 {
  using Floats = __m256;
  using Ints = __m256i;
  static constexpr uint32_t lanes = 8;
  static constexpr uint32_t rows = 6;
  static constexpr uint32_t tileRows = 6;
  static constexpr uint32_t together = 1;
  static constexpr size_t prefetchBytes = 5120;

  TARGET_INLINE __m256i zero() { return _mm256_setzero_si256(); }
  TARGET_INLINE __m256i load(const void* from) { return _mm256_load_si256(static_cast<const __m256i*>(from)); }
  TARGET_INLINE void store(uint32_t* to, __m256i values) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), values);
  }

  TARGET_INLINE __m256 loadFloats(const float* from) { return _mm256_load_ps(from); }
  TARGET_INLINE void store(float* to, __m256 values) { _mm256_storeu_ps(to, values); }
  TARGET_INLINE __m256 fill(float value) { return _mm256_set1_ps(value); }
  TARGET_INLINE __m256 maximum(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  TARGET_INLINE void widen(const uint16_t* halves, float* out) {
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  }

  TARGET_INLINE __m256i broadcast(const void* from) {
    int32_t word;
    std::memcpy(&word, from, 4);
    return _mm256_set1_epi32(word);
  }

  TARGET_INLINE __m256 scaled(__m256i dots, float scale) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(dots), _mm256_set1_ps(scale));
  }

  TARGET_INLINE void keep(__m256& best, __m256i& argument, __m256 similarity, uint32_t row) {
    const __m256 greater = _mm256_cmp_ps(similarity, best, _CMP_GT_OQ);
    best = _mm256_blendv_ps(best, similarity, greater);
    argument = _mm256_blendv_epi8(argument, _mm256_set1_epi32(int32_t(row)), _mm256_castps_si256(greater));
  }
};

/// Components plus `bias` as unsigned bytes, four dimensions a lane.
template <uint32_t rowBits>
struct Bytes256 : Lanes256 {
  using Element = uint8_t;
  static constexpr uint32_t group = 4;
  static constexpr uint32_t bits = rowBits;
  static constexpr int32_t bias = rowBits == 8 ? 128 : componentMost(rowBits);
  static constexpr uint32_t strip = 64;

  TARGET_INLINE void convert(const int8_t* from, uint8_t* out) {
    for (uint32_t d = 0; d < strip; d += stripCodes, from += RowShape(stripCodes, rowBits).bytes()) {
      __m256i bytes;
      if constexpr (rowBits == 8) {
        bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(int8_t(0x80)));
      } else {
        bytes = twiceCodes256<rowBits>(from);
      }
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + d), bytes);
    }
  }
};

}  // namespace
}  // namespace maxsimd
