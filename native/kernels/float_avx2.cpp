// Floating point with AVX2, F16C and FMA: 8 query tokens to a register, 4 rows at a time.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c,fma")))

#include <immintrin.h>

#include "kernels/float_lanes.h"
#include "kernels/floats256.h"

namespace maxsimd {
namespace {

struct FloatAvx2 : Floats256 {
  static constexpr uint32_t rows = 4;

  TARGET_INLINE __m256 zero() { return _mm256_setzero_ps(); }
  TARGET_INLINE __m256 broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  TARGET_INLINE void fusedAdd(__m256& sum, __m256 a, __m256 b) { sum = _mm256_fmadd_ps(a, b, sum); }
};

}  // namespace

const FloatKernel avx2FloatKernel =
    FloatLaneKernel<FloatAvx2>::kernel("avx2", [](const CpuFeatures& cpu) { return cpu.fma; });

}  // namespace maxsimd

#endif
