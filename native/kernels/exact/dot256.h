// The dot product of two int8 vectors in 256-bit registers.
#pragma once

#include "kernels/target.h"

#include <immintrin.h>

#include <cstdint>

namespace maxsimd {
namespace {

TARGET int32_t dot(const int8_t* a, const int8_t* b, uint32_t dim) {
  __m256i sum = _mm256_setzero_si256();
  uint32_t d = 0;
  for (; d + 16 <= dim; d += 16) {
    const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + d)));
    const __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + d)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
  }
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  int32_t total = _mm_cvtsi128_si32(half);
  for (; d < dim; ++d) total += int32_t(a[d]) * int32_t(b[d]);
  return total;
}

}  // namespace
}  // namespace maxsimd
