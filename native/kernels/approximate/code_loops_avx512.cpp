#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512dq")))
#define REGISTER_BYTES 64

#include "kernels/approximate/sum_of_entries256.h"

namespace maxsimd {
namespace {

TARGET_INLINE bool anyReaches(const Entries<fewTokens>& row, const Entries<fewTokens>& bound) {
  return _mm_cmpge_epu8_mask(__m128i(row), __m128i(bound)) != 0;
}

TARGET_INLINE bool anyReaches(const Entries<manyTokens>& row, const Entries<manyTokens>& bound) {
  return _mm256_cmpge_epu8_mask(__m256i(row), __m256i(bound)) != 0;
}

TARGET_INLINE bool anyReaches(const Entries<registerTokens>& row, const Entries<registerTokens>& bound) {
  return _mm512_cmpge_epu8_mask(__m512i(row), __m512i(bound)) != 0;
}

TARGET_INLINE uint32_t sumOf(const Entries<registerTokens>& entries) {
  return uint32_t(_mm512_reduce_add_epi64(_mm512_sad_epu8(__m512i(entries), _mm512_setzero_si512())));
}

TARGET_INLINE Quantized narrow(const Integers (&integers)[rowRegisters]) {
  return __builtin_convertvector(integers[0], Quantized);
}

}  // namespace

const CodeLoops avx512CodeLoops = codeLoops("avx512");

}  // namespace maxsimd

#endif
