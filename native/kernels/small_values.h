// Queries of small values: their products with bytes can be added up in 16 bits.
//
// vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits. The AVX2 kernel adds four such results. Of
// sixteen dimensions 0, 1, 4, 5, 8, 9, 12 and 13 meet in one sum and the others in another. With document bytes up to
// 255 no sum overflows if the absolute values of its eight query dimensions add up to at most 128: 255 * 128 < 2^15.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace maxsimd {

inline constexpr int32_t smallSumMost = 128;

/// The largest sum of absolute values of eight dimensions that meet in one sum, of an int8 or f32 vector.
template <typename Sum, typename Value>
Sum largestSumOfEight(const Value* vector, uint32_t dim) {
  Sum largest = 0;
  for (uint32_t first = 0; first < dim; first += 16) {
    Sum sums[2] = {};
    for (uint32_t d = first; d < std::min(first + 16, dim); ++d) sums[d / 2 % 2] += std::abs(Sum(vector[d]));
    largest = std::max({largest, sums[0], sums[1]});
  }
  return largest;
}

/// Whether all of int8 [count x dim] are small. Of rows of few bits the first test shows it, in vectors.
inline bool areSmall(const int8_t* vectors, uint32_t dim, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i, vectors += dim) {
    uint8_t bits = 0;
    for (uint32_t d = 0; d < dim; ++d) bits |= uint8_t(std::abs(vectors[d]));
    if (bits > smallSumMost / 8 - 1 && largestSumOfEight<int32_t>(vectors, dim) > smallSumMost) return false;
  }
  return true;
}

}  // namespace maxsimd
