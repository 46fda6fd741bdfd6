// The NEON instructions of the neon kernel in plain C++, for running its source on x86. Each function follows the
// definition of its intrinsic (Arm C Language Extensions).
#pragma once

#include "kernels/half.h"

#include <cstdint>
#include <cstring>

namespace maxsimd {
namespace {

typedef int8_t int8x16_t __attribute__((vector_size(16)));
typedef uint8_t uint8x16_t __attribute__((vector_size(16)));
typedef int32_t int32x4_t __attribute__((vector_size(16)));
typedef uint32_t uint32x4_t __attribute__((vector_size(16)));
typedef float float32x4_t __attribute__((vector_size(16)));
typedef uint16_t uint16x4_t __attribute__((vector_size(8)));
typedef uint16x4_t float16x4_t;

template <typename Register, typename Element>
inline Register readNeon(const Element* from) {
  Register out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

template <typename Register, typename Element>
inline void writeNeon(Element* to, Register values) {
  std::memcpy(to, &values, sizeof values);
}

inline int8x16_t vld1q_s8(const int8_t* from) { return readNeon<int8x16_t>(from); }
inline uint8x16_t vld1q_u8(const uint8_t* from) { return readNeon<uint8x16_t>(from); }
inline int32x4_t vld1q_s32(const int32_t* from) { return readNeon<int32x4_t>(from); }
inline float32x4_t vld1q_f32(const float* from) { return readNeon<float32x4_t>(from); }
inline uint16x4_t vld1_u16(const uint16_t* from) { return readNeon<uint16x4_t>(from); }
inline void vst1q_s8(int8_t* to, int8x16_t values) { writeNeon(to, values); }
inline void vst1q_f32(float* to, float32x4_t values) { writeNeon(to, values); }
inline void vst1q_u32(uint32_t* to, uint32x4_t values) { writeNeon(to, values); }

inline int8x16_t vdupq_n_s8(int8_t value) { return int8x16_t{} + value; }
inline uint8x16_t vdupq_n_u8(uint8_t value) { return uint8x16_t{} + value; }
inline int32x4_t vdupq_n_s32(int32_t value) { return int32x4_t{} + value; }
inline float32x4_t vdupq_n_f32(float value) { return float32x4_t{} + value; }

inline int8x16_t vreinterpretq_s8_u8(uint8x16_t values) { return int8x16_t(values); }
inline int8x16_t vreinterpretq_s8_s32(int32x4_t values) { return int8x16_t(values); }
inline uint32x4_t vreinterpretq_u32_s32(int32x4_t values) { return uint32x4_t(values); }
inline float16x4_t vreinterpret_f16_u16(uint16x4_t values) { return values; }

inline uint8x16_t vaddq_u8(uint8x16_t a, uint8x16_t b) { return a + b; }
inline int8x16_t vsubq_s8(int8x16_t a, int8x16_t b) { return a - b; }
inline uint8x16_t vandq_u8(uint8x16_t a, uint8x16_t b) { return a & b; }

/// Shifts left, or right by a negative count.
inline uint8x16_t vshlq_u8(uint8x16_t values, int8x16_t counts) {
  for (int i = 0; i < 16; ++i) {
    const int count = counts[i];
    values[i] = count <= -8 || count >= 8 ? 0 : uint8_t(count < 0 ? values[i] >> -count : values[i] << count);
  }
  return values;
}

__attribute__((noinline, optimize("O2"))) inline int32x4_t vdotq_s32(int32x4_t sums, int8x16_t a, int8x16_t b) {
  for (int i = 0; i < 16; ++i) sums[i / 4] += int32_t(a[i]) * int32_t(b[i]);
  return sums;
}

inline int32_t vaddvq_s32(int32x4_t values) { return values[0] + values[1] + values[2] + values[3]; }

inline float32x4_t vcvtq_f32_s32(int32x4_t values) { return __builtin_convertvector(values, float32x4_t); }

inline float32x4_t vcvt_f32_f16(float16x4_t halves) {
  return float32x4_t{halfToFloat(halves[0]), halfToFloat(halves[1]), halfToFloat(halves[2]), halfToFloat(halves[3])};
}

inline float32x4_t vmulq_n_f32(float32x4_t values, float factor) { return values * factor; }
inline float32x4_t vmaxq_f32(float32x4_t a, float32x4_t b) { return a > b ? a : b; }
inline uint32x4_t vcgtq_f32(float32x4_t a, float32x4_t b) { return uint32x4_t(a > b); }

/// Each bit of `a` where that of the mask is set, else of `b`.
inline int32x4_t vbslq_s32(uint32x4_t mask, int32x4_t a, int32x4_t b) {
  return int32x4_t((mask & uint32x4_t(a)) | (~mask & uint32x4_t(b)));
}
inline float32x4_t vbslq_f32(uint32x4_t mask, float32x4_t a, float32x4_t b) {
  return float32x4_t(vbslq_s32(mask, int32x4_t(a), int32x4_t(b)));
}

}  // namespace
}  // namespace maxsimd
