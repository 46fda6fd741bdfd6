// The 512-bit instructions of the kernels in plain C++, for running their sources on machines that have AVX2 alone. Each
// function follows the definition of its intrinsic. A source of this folder defines TARGET and includes this file before
// the kernel, whose intrinsics become these functions.
#pragma once

#include "kernels/target.h"

#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace maxsimd {
namespace {

/// Compiled once, not wherever a kernel uses it, so that kernels compile in seconds.
#define OUT_OF_LINE TARGET __attribute__((noinline, optimize("O2"))) inline

typedef int8_t Bytes512 __attribute__((vector_size(64)));
typedef int32_t Ints512 __attribute__((vector_size(64)));
typedef uint32_t Unsigned512 __attribute__((vector_size(64)));
typedef uint64_t Longs512 __attribute__((vector_size(64)));

template <typename Register>
TARGET_INLINE Register read512(const void* from) {
  Register out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

template <typename Register>
TARGET_INLINE void write512(void* to, Register values) {
  std::memcpy(to, &values, sizeof values);
}

/// An instruction that needs aligned memory faults without it.
inline void needAligned(const void* at) {
  if (reinterpret_cast<uintptr_t>(at) % 64 != 0) std::abort();
}

template <typename Register, typename Element>
TARGET_INLINE Register fill512(Element value) {
  typedef Element Elements __attribute__((vector_size(64)));
  return Register(Elements{} + value);
}

TARGET_INLINE __m256i halfOf(__m512i values, int half) {
  __m256i out[2];
  std::memcpy(out, &values, sizeof out);
  return out[half];
}

TARGET_INLINE __m256 halfOf(__m512 values, int half) {
  __m256 out[2];
  std::memcpy(out, &values, sizeof out);
  return out[half];
}

/// The halves of a register of 512 bits, one behind the other.
template <typename Register, typename Half>
TARGET_INLINE Register joined(Half low, Half high) {
  const Half both[2] = {low, high};
  return read512<Register>(both);
}

/// Per 32-bit lane the sum of four products of unsigned and signed bytes. Even and odd bytes are widened to 16 bits, where
/// no product and no sum of two in 32 bits overflows.
TARGET_INLINE __m256i sumsOfFour(__m256i sums, __m256i unsignedBytes, __m256i signedBytes) {
  const __m256i evenBytes = _mm256_set1_epi16(0xff);
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(unsignedBytes, evenBytes),
                                         _mm256_srai_epi16(_mm256_slli_epi16(signedBytes, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(unsignedBytes, 8), _mm256_srai_epi16(signedBytes, 8));
  return _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
}

OUT_OF_LINE void addProducts(__m256i& sums, const __m256i& unsignedBytes, const __m256i& signedBytes) {
  sums = sumsOfFour(sums, unsignedBytes, signedBytes);
}

OUT_OF_LINE void addProducts(__m512i& sums, const __m512i& unsignedBytes, const __m512i& signedBytes) {
  const __m256i low = sumsOfFour(halfOf(sums, 0), halfOf(unsignedBytes, 0), halfOf(signedBytes, 0));
  const __m256i high = sumsOfFour(halfOf(sums, 1), halfOf(unsignedBytes, 1), halfOf(signedBytes, 1));
  sums = joined<__m512i>(low, high);
}

TARGET_INLINE __m512i sumsOfFour(__m512i sums, const __m512i& unsignedBytes, const __m512i& signedBytes) {
  addProducts(sums, unsignedBytes, signedBytes);
  return sums;
}

TARGET_INLINE __m512 productsOf(__m512 a, __m512 b) { return a * b; }
TARGET_INLINE __m512 floatsOf(__m512i ints) { return __m512(__builtin_convertvector(Ints512(ints), __m512)); }
TARGET_INLINE __m512 largerOf(__m512 a, __m512 b) {
  return joined<__m512>(_mm256_max_ps(halfOf(a, 0), halfOf(b, 0)), _mm256_max_ps(halfOf(a, 1), halfOf(b, 1)));
}
TARGET_INLINE __m512 widened(__m256i halves) {
  return joined<__m512>(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                        _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)));
}

TARGET_INLINE __mmask16 greaterOf(__m512 a, __m512 b, int predicate) {
  if (predicate != _CMP_GT_OQ) std::abort();
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= uint32_t(a[i] > b[i]) << i;
  return __mmask16(mask);
}

/// `values` where a bit of the mask is set, else `kept`.
template <typename Register, typename Element>
TARGET_INLINE Register chosen(Register kept, __mmask16 mask, Register values) {
  Element out[16], from[16];
  std::memcpy(out, &kept, sizeof out);
  std::memcpy(from, &values, sizeof from);
  for (int i = 0; i < 16; ++i) {
    if (mask >> i & 1) out[i] = from[i];
  }
  return read512<Register>(out);
}

/// Reads only the bytes whose bit is set.
TARGET_INLINE __m512i maskedBytes(__mmask64 mask, const void* from) {
  int8_t out[64] = {};
  for (int i = 0; i < 64; ++i) {
    if (mask >> i & 1) out[i] = static_cast<const int8_t*>(from)[i];
  }
  return read512<__m512i>(out);
}

template <typename Elements, size_t count>
TARGET_INLINE __m512i permuted(__m512i index, __m512i values) {
  Elements out{};
  for (size_t i = 0; i < count; ++i) out[i] = Elements(values)[Elements(index)[i] & (count - 1)];
  return __m512i(out);
}

TARGET_INLINE __m512i lowerHalf(__m256i half) { return joined<__m512i>(half, _mm256_setzero_si256()); }

TARGET_INLINE int32_t sumOfLanes(__m512i values) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += Ints512(values)[i];
  return sum;
}

TARGET_INLINE __m512 readAligned(const float* from) {
  needAligned(from);
  return read512<__m512>(from);
}

template <typename Register>
TARGET_INLINE void writeAligned(void* to, Register values) {
  needAligned(to);
  write512(to, values);
}

}  // namespace
}  // namespace maxsimd

#undef _mm512_cmp_ps_mask
#undef _mm512_setr_epi32
#undef _mm512_setr_epi64
#define _mm512_add_epi8(a, b) (__m512i(Bytes512(a) + Bytes512(b)))
#define _mm512_and_si512(a, b) (__m512i(Longs512(a) & Longs512(b)))
#define _mm512_castsi128_si512(low) lowerHalf(_mm256_zextsi128_si256(low))
#define _mm512_castsi256_si512(low) lowerHalf(low)
#define _mm512_castsi512_si256(values) halfOf(values, 0)
#define _mm512_cmp_ps_mask(a, b, predicate) greaterOf(a, b, predicate)
#define _mm512_cvtepi32_ps(ints) floatsOf(ints)
#define _mm512_cvtph_ps(halves) widened(halves)
#define _mm512_dpbusd_epi32(sums, a, b) sumsOfFour(sums, a, b)
#define _mm512_load_ps(from) readAligned(from)
#define _mm512_loadu_si512(from) read512<__m512i>(from)
#define _mm512_mask_mov_epi32(kept, mask, values) chosen<__m512i, int32_t>(kept, mask, values)
#define _mm512_mask_mov_ps(kept, mask, values) chosen<__m512, float>(kept, mask, values)
#define _mm512_maskz_loadu_epi8(mask, from) maskedBytes(mask, from)
#define _mm512_max_ps(a, b) largerOf(a, b)
#define _mm512_mul_ps(a, b) productsOf(a, b)
#define _mm512_permutexvar_epi32(index, values) permuted<Unsigned512, 16>(index, values)
#define _mm512_permutexvar_epi64(index, values) permuted<Longs512, 8>(index, values)
#define _mm512_reduce_add_epi32(values) sumOfLanes(values)
#define _mm512_set1_epi32(value) fill512<__m512i, int32_t>(value)
#define _mm512_set1_epi8(value) fill512<__m512i, int8_t>(int8_t(value))
#define _mm512_set1_ps(value) fill512<__m512, float>(value)
#define _mm512_setr_epi32(...) (__m512i(Ints512{__VA_ARGS__}))
#define _mm512_setr_epi64(...) (__m512i(Longs512{__VA_ARGS__}))
#define _mm512_setzero_ps() (__m512{})
#define _mm512_setzero_si512() (__m512i{})
// Counts are less than the bits of a lane.
#define _mm512_srlv_epi32(values, counts) (__m512i(Unsigned512(values) >> Unsigned512(counts)))
#define _mm512_srlv_epi64(values, counts) (__m512i(Longs512(values) >> Longs512(counts)))
#define _mm512_store_ps(to, values) writeAligned(to, values)
#define _mm512_store_si512(to, values) writeAligned(to, values)
#define _mm512_storeu_ps(to, values) write512(to, values)
#define _mm512_storeu_si512(to, values) write512(to, values)
#define _mm512_sub_epi32(a, b) (__m512i(Ints512(a) - Ints512(b)))
#define _mm512_sub_epi8(a, b) (__m512i(Bytes512(a) - Bytes512(b)))
#define _mm512_xor_si512(a, b) (__m512i(Longs512(a) ^ Longs512(b)))

#define VPDPBUSD(sum, query, document) addProducts(sum, document, query)
