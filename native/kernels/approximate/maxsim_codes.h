// Approximate MaxSim over centroid codes, the inner loop: byte-wise maxima of a few table rows, then their sum.
//
//   entry[i] = max over c of table[codes[c] & codeMask][i]     u8, i < tokensPadded (a multiple of 32)
//   result   = sum over i of entry[i]               <= 512 * 255
//
// 32 tokens stay in registers over all codes of a chunk. SSE2 and NEON are baselines of their architectures:
// nothing is dispatched. (g++ 12 does not vectorise the plain loop: 60 ns a code instead of 1.)
#pragma once

#include "kernels/approximate/code_span.h"

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace maxsimd {

inline uint32_t sumOfMaxima(const uint8_t* table, uint32_t tokensPadded, uint32_t codeMask, const CodeSpan& codes) {
  uint32_t sum = 0;
  for (uint32_t token = 0; token < tokensPadded; token += 32) {
#if defined(__x86_64__)
    __m128i low = _mm_setzero_si128(), high = _mm_setzero_si128();
    for (uint32_t c = 0; c < codes.count; ++c) {
      const auto* row = reinterpret_cast<const __m128i*>(table + size_t(codes.at(c, codeMask)) * tokensPadded + token);
      low = _mm_max_epu8(low, _mm_loadu_si128(row));
      high = _mm_max_epu8(high, _mm_loadu_si128(row + 1));
    }
    const __m128i zero = _mm_setzero_si128();
    const __m128i sums = _mm_add_epi64(_mm_sad_epu8(low, zero), _mm_sad_epu8(high, zero));
    sum += uint32_t(_mm_cvtsi128_si32(sums)) + uint32_t(_mm_cvtsi128_si32(_mm_srli_si128(sums, 8)));
#elif defined(__aarch64__)
    uint8x16_t low = vdupq_n_u8(0), high = vdupq_n_u8(0);
    for (uint32_t c = 0; c < codes.count; ++c) {
      const uint8_t* row = table + size_t(codes.at(c, codeMask)) * tokensPadded + token;
      low = vmaxq_u8(low, vld1q_u8(row));
      high = vmaxq_u8(high, vld1q_u8(row + 16));
    }
    sum += vaddlvq_u8(low) + vaddlvq_u8(high);
#else
    for (uint32_t i = token; i < token + 32; ++i) {
      uint8_t entry = 0;
      for (uint32_t c = 0; c < codes.count; ++c) {
        const uint8_t value = table[size_t(codes.at(c, codeMask)) * tokensPadded + i];
        if (value > entry) entry = value;
      }
      sum += entry;
    }
#endif
  }
  return sum;
}

}  // namespace maxsimd
