// The best k of many scores by radix selection: which digits the k-th best key begins with is found one digit after the other, from
// a count of those keys that begin with the digits found so far. Keys are unique, so exactly k are at least the k-th.
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
/// Over 64 bits, from the highest; the last pass has 9.
inline constexpr uint32_t passes = 6;

/// Ascending with the score; of equal scores the lower chunk is the greater key. No NaN.
MAXSIMD_BOTH uint64_t keyOf(float score, uint32_t chunk) {
#ifdef __CUDA_ARCH__
  const uint32_t bits = __float_as_uint(score);
#else
  const uint32_t bits = std::bit_cast<uint32_t>(score);
#endif
  const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t(ordered) << 32 | ~chunk;
}

MAXSIMD_BOTH uint32_t chunkOf(uint64_t key) { return ~uint32_t(key); }

MAXSIMD_BOTH float scoreOf(uint64_t key) {
  const uint32_t ordered = uint32_t(key >> 32);
  const uint32_t bits = (ordered & 0x80000000u) != 0 ? ordered & 0x7fffffffu : ~ordered;
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// Bits below the digit of a pass.
MAXSIMD_BOTH uint32_t bitsBelow(uint32_t pass) { return pass + 1 < passes ? 64 - digitBits * (pass + 1) : 0; }

MAXSIMD_BOTH uint32_t digitOf(uint64_t key, uint32_t pass) { return uint32_t(key >> bitsBelow(pass)) & (digits - 1) >> (pass + 1 < passes ? 0 : digitBits * passes - 64); }

/// What is known of the k-th best key: its digits of the passes done, and how many of those with these digits are wanted.
struct Selection {
  uint64_t prefix;
  uint32_t wanted;
};

MAXSIMD_BOTH bool begins(uint64_t key, const Selection& selection, uint32_t pass) {
  return pass == 0 || (key ^ selection.prefix) >> bitsBelow(pass - 1) == 0;
}

/// `counts` [digits]: keys by their digit of this pass, of those that begin as found so far. Digits from `above` on are counted already.
MAXSIMD_BOTH void choose(Selection& selection, const uint32_t* counts, uint32_t pass, uint32_t above = digits) {
  uint32_t digit = above;
  while (digit > 0) {
    digit -= 1;
    if (counts[digit] >= selection.wanted) break;
    selection.wanted -= counts[digit];
  }
  selection.prefix |= uint64_t(digit) << bitsBelow(pass);
}

}  // namespace maxsimd::cuda
