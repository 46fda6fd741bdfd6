// The inner loops of an encoder that makes stored rows of f32 vectors: pooling (pooling.h) and refined codes (refined.h).
// They are compiled once for AVX2 and once for the instructions that every processor of an architecture has. Sums are of
// integers, or of f32 in a stated order without fused operations, so both sets give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace maxsimd {

/// Rows whose gradients grow side by side, because each part of the matrix is then read once for all of them.
inline constexpr size_t gradientRows = 4;

/// A row whose codes are refined. All arrays have `width` values, the padded components (rows.h).
struct RefinedRow {
  /// The vector that is stored.
  const float* vector;
  /// How much a move of a code by 2 costs, whatever its direction.
  const float* cost;
  /// Odd numbers from -most to most, changed in place.
  float* components;
  /// Half of the gradient of the loss, changed in place.
  float* gradient;
  float scale;
};

struct RowLoops {
  const char* name;

  /// products[a * rows + b] = the product of the rows a and b of int16 [rows x width].
  void (*products)(const int16_t* values, size_t rows, size_t width, int32_t* products);

  /// The first of the least values[i] + penalties[i], or `count` where none is below infinity.
  size_t (*nearest)(const float* values, const float* penalties, size_t count);

  /// own[i] = ((size + sizes[i]) own[i] + (otherSize + sizes[i]) other[i] - sizes[i] distance) /
  ///          (size + otherSize + sizes[i]), but at least the lesser of own[i] and other[i]: the recurrence of Lance and
  /// Williams (The Computer Journal 9, 1967) for Ward's criterion.
  void (*join)(float* own, const float* other, const float* sizes, size_t count, float size, float otherSize,
               float distance);

  /// gradients[r][i] = the sum over j < dim of errors[r][j] * moment[j][i], j ascending. f32 [gradientRows x width], [dim x
  /// width].
  void (*gradients)(const float* moment, size_t dim, size_t width, const float* errors, float* gradients);

  /// Moves codes of a row one after another, as refined.h says.
  void (*refine)(const float* moment, size_t width, float most, const RefinedRow& row);
};

/// The best loops that this machine supports.
const RowLoops& rowLoops();

#if defined(__x86_64__)
extern const RowLoops avx2RowLoops;
#endif
/// For the instructions that every processor of the architecture has: SSE2, NEON.
extern const RowLoops baselineRowLoops;

}  // namespace maxsimd
