// The part of `Ops` (lanes.h) that kernels of 512-bit registers share: all but the elements and their multiplication.
// Also the dot product of two vectors.
#pragma once

#include "kernels/exact/lanes.h"

namespace maxsimd {
namespace {

struct Lanes512 {
  using Floats = __m512;
  using Ints = __m512i;
  static constexpr uint32_t lanes = 16;
  static constexpr uint32_t rows = 8;
  static constexpr uint32_t tileRows = 8;
  static constexpr uint32_t together = 1;
  static constexpr size_t prefetchBytes = 5120;

  TARGET_INLINE __m512i zero() { return _mm512_setzero_si512(); }
  /// Unaligned, because one and a half registers of tokens are no whole cache lines.
  TARGET_INLINE __m512i load(const void* from) { return _mm512_loadu_si512(from); }
  TARGET_INLINE void store(uint32_t* to, __m512i values) { _mm512_storeu_si512(to, values); }

  TARGET_INLINE __m512 loadFloats(const float* from) { return _mm512_load_ps(from); }
  TARGET_INLINE void store(float* to, __m512 values) { _mm512_storeu_ps(to, values); }
  TARGET_INLINE __m512 fill(float value) { return _mm512_set1_ps(value); }
  TARGET_INLINE __m512 maximum(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
  TARGET_INLINE void widen(const uint16_t* halves, float* out) {
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  }

  TARGET_INLINE __m512i broadcast(const void* from) {
    int32_t word;
    std::memcpy(&word, from, 4);
    return _mm512_set1_epi32(word);
  }

  TARGET_INLINE __m512 scaled(__m512i dots, float scale) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(dots), _mm512_set1_ps(scale));
  }

  TARGET_INLINE void keep(__m512& best, __m512i& argument, __m512 similarity, uint32_t row) {
    const __mmask16 greater = _mm512_cmp_ps_mask(similarity, best, _CMP_GT_OQ);
    best = _mm512_mask_mov_ps(best, greater, similarity);
    argument = _mm512_mask_mov_epi32(argument, greater, _mm512_set1_epi32(int32_t(row)));
  }
};

/// Twice each code of two strips, as bytes in order.
template <uint32_t rowBits>
TARGET_INLINE __m512i twiceCodes512(const int8_t* from) {
  __m512i codes;
  if constexpr (rowBits == 4) {
    codes = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    codes = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3), codes);
    codes = _mm512_srlv_epi64(codes, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
  } else if constexpr (rowBits == 2) {
    codes = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    codes = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), codes);
    codes = _mm512_srlv_epi64(codes, _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6));
  } else {
    codes = _mm512_castsi128_si512(_mm_loadu_si64(from));
    codes = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), codes);
    codes = _mm512_srlv_epi32(codes, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7));
  }
  codes = _mm512_and_si512(codes, _mm512_set1_epi8(componentMost(rowBits)));
  return _mm512_add_epi8(codes, codes);
}

TARGET int32_t dot(const int8_t* a, const int8_t* b, uint32_t dim) {
  // (a + 128) . b - 128 * sum(b): flipping the sign bit makes a unsigned. Masked bytes of b are 0.
  const __m512i flip = _mm512_set1_epi8(int8_t(0x80));
  __m512i products = _mm512_setzero_si512(), sums = _mm512_setzero_si512();
  for (uint32_t d = 0; d < dim; d += 64) {
    const __mmask64 mask = dim - d >= 64 ? ~uint64_t(0) : (uint64_t(1) << (dim - d)) - 1;
    const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, a + d), flip);
    const __m512i y = _mm512_maskz_loadu_epi8(mask, b + d);
    products = _mm512_dpbusd_epi32(products, x, y);
    sums = _mm512_dpbusd_epi32(sums, flip, y);
  }
  return _mm512_reduce_add_epi32(_mm512_sub_epi32(products, sums));
}

}  // namespace
}  // namespace maxsimd
