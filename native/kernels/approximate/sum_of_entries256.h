// The sum of a vector of entries, for every instruction set that has AVX2. A source defines TARGET before.
#pragma once

#include "kernels/approximate/code_loops_body.h"

namespace maxsimd {
namespace {

TARGET_INLINE uint32_t sumOf(const Entries& entries) {
  const __m256i sums = _mm256_sad_epu8(__m256i(entries), _mm256_setzero_si256());
  const __m128i both = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return uint32_t(_mm_cvtsi128_si32(both)) + uint32_t(_mm_cvtsi128_si32(_mm_srli_si128(both, 8)));
}

}  // namespace
}  // namespace maxsimd
