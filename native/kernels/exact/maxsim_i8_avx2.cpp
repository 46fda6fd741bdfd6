// AVX2: 8 query tokens to a register, two dimensions to a lane.
//
// Both sides are 16-bit integers under vpmaddwd. That costs the same two instructions per 32 products as the 8-bit
// vpmaddubsw + vpmaddwd pair, needs no sign juggling, and cannot saturate: a pair is at most 2 * 128 * 128 and a
// dot at most 2^24.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c")))

#include <immintrin.h>

#include "kernels/exact/dot256.h"
#include "kernels/exact/lanes256.h"

namespace maxsimd {
namespace {

struct Avx2 : Lanes256 {
  using Element = int16_t;
  static constexpr uint32_t group = 2;
  static constexpr bool biased = false;
  static constexpr uint32_t strip = 64;

  TARGET_INLINE void convert(const int8_t* from, int16_t* out) {
    for (uint32_t d = 0; d < strip; d += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + d));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + d), _mm256_cvtepi8_epi16(bytes));
    }
  }

  /// sum += dot2(query, document) per lane. Spelled as assembly because g++ 12 spills the sums of the intrinsics
  /// (82 instead of 53 ns a row of 128 dimensions against 32 tokens on Zen 4).
  TARGET_INLINE void accumulate(__m256i& sum, __m256i query, __m256i document) {
    __m256i product;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(query), "x"(document));
  }
};

}  // namespace

const Kernel avx2Kernel =
    LaneKernel<Avx2>::kernel("avx2", [](const CpuFeatures& cpu) { return cpu.avx2; }, dot, &avx2CodeLoops);

}  // namespace maxsimd

#endif
