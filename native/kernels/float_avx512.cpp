// Floating point with AVX-512: 16 query tokens to a register, 8 rows at a time.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c,fma,avx512f,avx512bw,avx512vl,avx512dq")))

#include <immintrin.h>

#include "kernels/float_lanes.h"
#include "kernels/floats512.h"

namespace maxsimd {
namespace {

struct FloatAvx512 : Floats512 {
  static constexpr uint32_t rows = 8;

  TARGET_INLINE __m512 zero() { return _mm512_setzero_ps(); }
  TARGET_INLINE __m512 broadcast(const float* from) { return _mm512_set1_ps(*from); }
  TARGET_INLINE void fusedAdd(__m512& sum, __m512 a, __m512 b) { sum = _mm512_fmadd_ps(a, b, sum); }
};

}  // namespace

const FloatKernel avx512FloatKernel = FloatLaneKernel<FloatAvx512>::kernel(
    "avx512", [](const CpuFeatures& cpu) { return cpu.avx512vnni && cpu.fma; });

}  // namespace maxsimd

#endif
