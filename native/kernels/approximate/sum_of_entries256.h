// The sum of entries for instruction sets with AVX2. The source defines TARGET first.
#pragma once

#include "kernels/approximate/code_loops_body.h"

namespace maxsimd {
namespace {

TARGET_INLINE uint32_t sumOfBoth(__m128i sums) {
  return uint32_t(_mm_cvtsi128_si32(sums)) + uint32_t(_mm_cvtsi128_si32(_mm_srli_si128(sums, 8)));
}

TARGET_INLINE uint32_t sumOf(const Entries<fewTokens>& entries) {
  return sumOfBoth(_mm_sad_epu8(__m128i(entries), _mm_setzero_si128()));
}

TARGET_INLINE uint32_t sumOf(const Entries<manyTokens>& entries) {
  const __m256i sums = _mm256_sad_epu8(__m256i(entries), _mm256_setzero_si256());
  return sumOfBoth(_mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1)));
}

}  // namespace
}  // namespace maxsimd
