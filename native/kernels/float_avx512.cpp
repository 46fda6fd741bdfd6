// Floating point with AVX-512: 16 query tokens to a register, 8 rows at a time.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c,fma,avx512f,avx512bw,avx512vl,avx512dq")))

#include <immintrin.h>

#include "kernels/float_lanes.h"

namespace maxsimd {
namespace {

struct FloatAvx512 {
  using Floats = __m512;
  static constexpr uint32_t lanes = 16;
  static constexpr uint32_t rows = 8;

  TARGET_INLINE __m512 zero() { return _mm512_setzero_ps(); }
  TARGET_INLINE __m512 load(const float* from) { return _mm512_load_ps(from); }
  TARGET_INLINE void store(float* to, __m512 values) { _mm512_store_ps(to, values); }
  TARGET_INLINE __m512 fill(float value) { return _mm512_set1_ps(value); }
  TARGET_INLINE __m512 broadcast(const float* from) { return _mm512_set1_ps(*from); }
  TARGET_INLINE void fusedAdd(__m512& sum, __m512 a, __m512 b) { sum = _mm512_fmadd_ps(a, b, sum); }
  TARGET_INLINE __m512 maximum(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
  TARGET_INLINE void widen(const uint16_t* halves, float* out) {
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  }
};

}  // namespace

const FloatKernel avx512FloatKernel = FloatLaneKernel<FloatAvx512>::kernel(
    "avx512", [](const CpuFeatures& cpu) { return cpu.avx512vnni && cpu.fma; });

}  // namespace maxsimd

#endif
