// Floating point with AVX2, F16C and FMA: 8 query tokens to a register, 4 rows at a time.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c,fma")))

#include <immintrin.h>

#include "kernels/float_lanes.h"

namespace maxsimd {
namespace {

struct FloatAvx2 {
  using Floats = __m256;
  static constexpr uint32_t lanes = 8;
  static constexpr uint32_t rows = 4;

  TARGET_INLINE __m256 zero() { return _mm256_setzero_ps(); }
  TARGET_INLINE __m256 load(const float* from) { return _mm256_load_ps(from); }
  TARGET_INLINE void store(float* to, __m256 values) { _mm256_store_ps(to, values); }
  TARGET_INLINE __m256 fill(float value) { return _mm256_set1_ps(value); }
  TARGET_INLINE __m256 broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  TARGET_INLINE void fusedAdd(__m256& sum, __m256 a, __m256 b) { sum = _mm256_fmadd_ps(a, b, sum); }
  TARGET_INLINE __m256 maximum(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  TARGET_INLINE void widen(const uint16_t* halves, float* out) {
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  }
};

}  // namespace

const FloatKernel avx2FloatKernel =
    FloatLaneKernel<FloatAvx2>::kernel("avx2", [](const CpuFeatures& cpu) { return cpu.fma; });

}  // namespace maxsimd

#endif
