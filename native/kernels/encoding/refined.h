// Refined codes: codes of few bits that lose less along queries.
//
// A code's error e costs a search the product of e with query vectors, and those lie where token states lie. So
// single codes are moved as long as the loss e' (H + ownWeight y y') e falls: y is the vector, and H the mean of r r' over
// unit rows r of text, rotated as y is. From e = y - s c with the codes c and their scale s, and with g = H e and p = y e,
// one move is: t = g + ownWeight p y; the component with the greatest gain |t_i| - s (H_ii + ownWeight y_i^2) > 0 moves by 2
// towards t_i, unless that leaves the range; g and p follow. Of equal gains the first counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

inline constexpr float ownWeight = 0.1f;
inline constexpr uint32_t movesMost = 16;

/// The matrix H of a model.
class RowMoment {
 public:
  /// `values`: f16 [dim x dim], symmetric.
  RowMoment(std::span<const uint16_t> values, uint32_t dim);

  uint32_t dim() const { return dim_; }
  /// The length of a row of `values`, which zeros fill up.
  size_t width() const { return width_; }
  const float* values() const { return values_.data(); }
  const float* diagonal() const { return diagonal_.data(); }

 private:
  uint32_t dim_;
  size_t width_;
  std::vector<float> values_, diagonal_;
};

/// Refines codes of some vectors. One a thread, because it has working memory.
class Refinement {
 public:
  Refinement(const RowMoment& moment, uint32_t bits);

  /// Changes the codes of at most `gradientRows` rows in place: u8 [rows x width]. `vectors`: f32 [rows x dim]; `scales`:
  /// those of the codes. A row whose scale is not above 0 stays as it is, and so does one whose product with its vector
  /// would not be.
  void refine(const float* vectors, std::span<const float> scales, uint8_t* codes);

 private:
  const RowMoment& moment_;
  int32_t most_;
  std::vector<float> vectors_, errors_, gradients_, components_, costs_;
};

}  // namespace maxsimd
