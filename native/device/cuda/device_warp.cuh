// One lane of a warp on the device. Needs compute capability 8.0 or newer.
#pragma once

#include <cstdint>
#include <cuda_fp16.h>

namespace maxsimd::cuda {

struct DeviceWarp {
  using U32 = uint32_t;
  using I32 = int32_t;
  using F32 = float;
  template <uint32_t Count>
  struct Words {
    uint32_t words[Count];
  };

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ float f32(float value) { return value; }
  static __device__ __forceinline__ int32_t i32(int32_t value) { return value; }
  static __device__ __forceinline__ uint32_t least(uint32_t a, uint32_t b) { return min(a, b); }
  static __device__ __forceinline__ float greater(float a, float b) { return fmaxf(a, b); }
  // These two are never fused into one operation with one rounding.
  static __device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
  static __device__ __forceinline__ float sum(float a, float b) { return __fadd_rn(a, b); }
  static __device__ __forceinline__ float toFloat(int32_t a) { return __int2float_rn(a); }

  /// Document rows are read once a pass, so they bypass the first-level cache.
  template <uint32_t Count>
  static __device__ __forceinline__ Words<Count> stream(const int8_t* base, uint32_t offset) {
    if constexpr (Count == 1) return {{__ldcs(reinterpret_cast<const uint32_t*>(base + offset))}};
    if constexpr (Count == 2) {
      const uint2 words = __ldcs(reinterpret_cast<const uint2*>(base + offset));
      return {{words.x, words.y}};
    }
    if constexpr (Count == 4) return four(__ldcs(reinterpret_cast<const uint4*>(base + offset)));
  }
  /// Query rows are the same for every chunk, so they stay in the cache.
  static __device__ __forceinline__ Words<4> keep(const int8_t* base, uint32_t offset) {
    return four(*reinterpret_cast<const uint4*>(base + offset));
  }
  static __device__ __forceinline__ float half(const uint16_t* base, uint32_t offset) {
    return __half2float(__ushort_as_half(__ldcs(base + offset)));
  }
  template <class Value>
  static __device__ __forceinline__ Value read(const Value* base, uint32_t offset) {
    return base[offset];
  }
  static __device__ __forceinline__ float exchange(float a, uint32_t distance) {
    return __shfl_xor_sync(0xffffffff, a, distance);
  }
  static __device__ __forceinline__ void store(float* to, float value) {
    if (lane() == 0) *to = value;
  }

  static __device__ __forceinline__ void multiply(int32_t (&products)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                  uint32_t a3, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(products[0]), "+r"(products[1]), "+r"(products[2]), "+r"(products[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }

 private:
  static __device__ __forceinline__ Words<4> four(uint4 words) { return {{words.x, words.y, words.z, words.w}}; }
};

}  // namespace maxsimd::cuda
