// The best k of many scores by radix selection. It finds the key of the k-th best score digit by digit: each pass
// counts the scores that begin with the digits found so far.
#pragma once

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define MAXSIMD_BOTH __host__ __device__ inline
#else
#define MAXSIMD_BOTH inline
#endif

namespace maxsimd::cuda {

inline constexpr uint32_t digitBits = 11;
inline constexpr uint32_t digits = 1u << digitBits;
/// A key has 32 bits. Passes go from the highest; the last one has 10 bits.
inline constexpr uint32_t passes = 3;

/// Keys ascend with the score. There is no NaN and no -0, because sums begin with +0.
MAXSIMD_BOTH uint32_t keyOf(float score) {
#ifdef __CUDA_ARCH__
  const uint32_t bits = __float_as_uint(score);
#else
  const uint32_t bits = std::bit_cast<uint32_t>(score);
#endif
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

MAXSIMD_BOTH float scoreOf(uint32_t key) {
  const uint32_t bits = (key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key;
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// Bits below the digit of a pass.
MAXSIMD_BOTH uint32_t bitsBelow(uint32_t pass) { return pass + 1 < passes ? 32 - digitBits * (pass + 1) : 0; }

MAXSIMD_BOTH uint32_t digitOf(uint32_t key, uint32_t pass) {
  return key >> bitsBelow(pass) & (digits - 1) >> (pass + 1 < passes ? 0 : digitBits * passes - 32);
}

/// State of the selection: the k-th best key's digits of the passes done, and how many keys with these digits are still
/// wanted.
struct Selection {
  uint32_t prefix;
  uint32_t wanted;
};

MAXSIMD_BOTH bool begins(uint32_t key, const Selection& selection, uint32_t pass) {
  return pass == 0 || (key ^ selection.prefix) >> bitsBelow(pass - 1) == 0;
}

/// `counts` [digits]: how many keys have each digit in this pass, among those that begin with the digits found so far.
/// Digits from `above` on are subtracted from `wanted` already. If there are fewer keys than wanted, the prefix stays
/// 0, and no key is below it.
MAXSIMD_BOTH void choose(Selection& selection, const uint32_t* counts, uint32_t pass, uint32_t above = digits) {
  uint32_t digit = above;
  while (digit > 0) {
    digit -= 1;
    if (counts[digit] >= selection.wanted) break;
    selection.wanted -= counts[digit];
  }
  selection.prefix |= digit << bitsBelow(pass);
}

}  // namespace maxsimd::cuda
