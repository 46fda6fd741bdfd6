// NEON with SDOT (Armv8.2): 4 query tokens a register, four dimensions a lane, signed on both sides.
//
// The native tests include this source on x86, too, behind functions that emulate the instructions.
#if defined(__aarch64__) || defined(EMULATED)

#if !defined(EMULATED)
#define TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#include <arm_neon.h>
#endif

#include "kernels/exact/lanes.h"

namespace maxsimd {
namespace {

template <uint32_t rowBits>
struct Neon {
  using Element = int8_t;
  using Ints = int32x4_t;
  using Floats = float32x4_t;
  static constexpr uint32_t group = 4;
  static constexpr uint32_t bits = rowBits;
  static constexpr int32_t bias = 0;
  static constexpr uint32_t lanes = 4;
  static constexpr uint32_t rows = 8;
  static constexpr uint32_t tileRows = 8;
  static constexpr uint32_t together = 1;
  static constexpr uint32_t strip = 64;
  static constexpr size_t prefetchBytes = 5120;

  TARGET_INLINE void convert(const int8_t* from, int8_t* out) {
    for (uint32_t d = 0; d < strip; d += 16) {
      if constexpr (rowBits == 8) {
        vst1q_s8(out + d, vld1q_s8(from + d));
      } else {
        vst1q_s8(out + d, components(from + d / stripCodes * (stripCodes / 8 * rowBits), d % stripCodes / 16));
      }
    }
  }

  /// The components of one half of a strip.
  TARGET_INLINE int8x16_t components(const int8_t* from, uint32_t half) {
    constexpr uint32_t width = stripCodes / 8 * rowBits;
    alignas(16) int8_t bytes[16], shifts[16];
    for (uint32_t i = 0; i < 16; ++i) {
      bytes[i] = from[(16 * half + i) % width];
      shifts[i] = -int8_t((16 * half + i) / width * rowBits);
    }
    uint8x16_t codes = vshlq_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(bytes)), vld1q_s8(shifts));
    codes = vandq_u8(codes, vdupq_n_u8(componentMost(rowBits)));
    return vsubq_s8(vreinterpretq_s8_u8(vaddq_u8(codes, codes)), vdupq_n_s8(componentMost(rowBits)));
  }

  TARGET_INLINE void widen(const uint16_t* halves, float* out) {
    for (uint32_t r = 0; r < 8; r += 4) {
      vst1q_f32(out + r, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves + r))));
    }
  }

  TARGET_INLINE int32x4_t zero() { return vdupq_n_s32(0); }
  TARGET_INLINE int32x4_t load(const void* from) { return vld1q_s32(static_cast<const int32_t*>(from)); }
  TARGET_INLINE float32x4_t loadFloats(const float* from) { return vld1q_f32(from); }
  TARGET_INLINE void store(float* to, float32x4_t values) { vst1q_f32(to, values); }
  TARGET_INLINE void store(uint32_t* to, int32x4_t values) { vst1q_u32(to, vreinterpretq_u32_s32(values)); }
  TARGET_INLINE float32x4_t fill(float value) { return vdupq_n_f32(value); }

  TARGET_INLINE int32x4_t broadcast(const int8_t* from) {
    int32_t word;
    std::memcpy(&word, from, 4);
    return vdupq_n_s32(word);
  }

  /// sum += dot4(query, document) per lane.
  TARGET_INLINE void accumulate(int32x4_t& sum, int32x4_t query, int32x4_t document) {
    sum = vdotq_s32(sum, vreinterpretq_s8_s32(query), vreinterpretq_s8_s32(document));
  }

  TARGET_INLINE float32x4_t scaled(int32x4_t dots, float scale) { return vmulq_n_f32(vcvtq_f32_s32(dots), scale); }
  TARGET_INLINE float32x4_t maximum(float32x4_t a, float32x4_t b) { return vmaxq_f32(a, b); }

  TARGET_INLINE void keep(float32x4_t& best, int32x4_t& argument, float32x4_t similarity, uint32_t row) {
    const uint32x4_t greater = vcgtq_f32(similarity, best);
    best = vbslq_f32(greater, similarity, best);
    argument = vbslq_s32(greater, vdupq_n_s32(int32_t(row)), argument);
  }
};

TARGET int32_t dot(const int8_t* a, const int8_t* b, uint32_t dim) {
  int32x4_t sum = vdupq_n_s32(0);
  uint32_t d = 0;
  for (; d + 16 <= dim; d += 16) sum = vdotq_s32(sum, vld1q_s8(a + d), vld1q_s8(b + d));
  int32_t total = vaddvq_s32(sum);
  for (; d < dim; ++d) total += int32_t(a[d]) * int32_t(b[d]);
  return total;
}

template <uint32_t rowBits>
using Rows = LaneKernel<Neon<rowBits>>;

}  // namespace

const Kernel neonKernel =
    ByRowBits<Rows>::kernel("neon", [](const CpuFeatures& cpu) { return cpu.dotprod; }, dot, &baselineCodeLoops);

}  // namespace maxsimd

#endif
