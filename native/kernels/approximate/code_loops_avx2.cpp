#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#define REGISTER_BYTES 32

#include "kernels/approximate/sum_of_entries256.h"

namespace maxsimd {
namespace {

TARGET_INLINE bool anyReaches(const Entries<fewTokens>& row, const Entries<fewTokens>& bound) {
  return _mm_movemask_epi8(__m128i(row >= bound)) != 0;
}

TARGET_INLINE bool anyReaches(const Entries<manyTokens>& row, const Entries<manyTokens>& bound) {
  return _mm256_movemask_epi8(__m256i(row >= bound)) != 0;
}

TARGET_INLINE Quantized narrow(const Integers (&integers)[rowRegisters]) {
  const __m256i crossed = _mm256_packus_epi32(__m256i(integers[0]), __m256i(integers[1]));
  const __m256i words = _mm256_permute4x64_epi64(crossed, 0xd8);
  return Quantized(_mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

}  // namespace

const CodeLoops avx2CodeLoops = codeLoops("avx2");

}  // namespace maxsimd

#endif
