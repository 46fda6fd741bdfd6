// Registers of 8 floats: what int8 kernels (lanes256.h) and floating-point ones do alike.
#pragma once

#include "kernels/target.h"

#include <cstdint>

namespace maxsimd {
namespace {

struct Floats256 {
  using Floats = __m256;
  static constexpr uint32_t lanes = 8;

  TARGET_INLINE __m256 loadFloats(const float* from) { return _mm256_load_ps(from); }
  TARGET_INLINE void store(float* to, __m256 values) { _mm256_storeu_ps(to, values); }
  TARGET_INLINE __m256 fill(float value) { return _mm256_set1_ps(value); }
  TARGET_INLINE __m256 maximum(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  TARGET_INLINE void widen(const uint16_t* halves, float* out) {
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  }
};

}  // namespace
}  // namespace maxsimd
