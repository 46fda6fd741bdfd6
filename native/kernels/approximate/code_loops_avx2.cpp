#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))

#include "kernels/approximate/sum_of_entries256.h"

namespace maxsimd {
namespace {

TARGET_INLINE bool anyReaches(const Entries& row, const Entries& bound) {
  return _mm256_movemask_epi8(__m256i(row >= bound)) != 0;
}

}  // namespace

const CodeLoops avx2CodeLoops = codeLoops("avx2");

}  // namespace maxsimd

#endif
