// Registers of 16 floats: what int8 kernels (lanes512.h) and floating-point ones do alike.
#pragma once

#include "kernels/target.h"

#include <cstdint>

namespace maxsimd {
namespace {

struct Floats512 {
  using Floats = __m512;
  static constexpr uint32_t lanes = 16;

  TARGET_INLINE __m512 loadFloats(const float* from) { return _mm512_load_ps(from); }
  TARGET_INLINE void store(float* to, __m512 values) { _mm512_storeu_ps(to, values); }
  TARGET_INLINE __m512 fill(float value) { return _mm512_set1_ps(value); }
  TARGET_INLINE __m512 maximum(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
  TARGET_INLINE void widen(const uint16_t* halves, float* out) {
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  }
};

}  // namespace
}  // namespace maxsimd
