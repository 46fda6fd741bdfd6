#include "kernels/encoding/refined.h"

#include "kernels/encoding/row_loops.h"
#include "kernels/half.h"
#include "kernels/rows.h"

#include <algorithm>

namespace maxsimd {

RowMoment::RowMoment(std::span<const uint16_t> values, uint32_t dim)
    : dim_(dim), width_(paddedComponents(dim)), values_(dim * width_), diagonal_(width_) {
  for (size_t j = 0; j < dim; ++j) {
    for (size_t i = 0; i < dim; ++i) values_[j * width_ + i] = halfToFloat(values[j * dim + i]);
    diagonal_[j] = values_[j * width_ + j];
  }
}

Refinement::Refinement(const RowMoment& moment, uint32_t bits)
    : moment_(moment),
      most_(componentMost(bits)),
      vectors_(gradientRows * moment.width()),
      errors_(vectors_.size()),
      gradients_(vectors_.size()),
      components_(vectors_.size()),
      costs_(vectors_.size()) {}

void Refinement::refine(const float* vectors, std::span<const float> scales, uint8_t* codes) {
  const size_t dim = moment_.dim(), width = moment_.width();
  const RowLoops& loops = rowLoops();
  std::fill(errors_.begin(), errors_.end(), 0.0f);
  for (size_t r = 0; r < scales.size(); ++r) {
    const float scale = scales[r];
    const size_t at = r * width;
    std::copy_n(vectors + r * dim, dim, &vectors_[at]);
    for (size_t d = 0; d < dim; ++d) {
      const float component = float(2 * int32_t(codes[at + d]) - most_), value = vectors_[at + d];
      components_[at + d] = component;
      errors_[at + d] = value - scale * component;
      costs_[at + d] = scale * (moment_.diagonal()[d] + ownWeight * value * value);
    }
  }
  loops.gradients(moment_.values(), dim, width, errors_.data(), gradients_.data());
  for (size_t r = 0; r < scales.size(); ++r) {
    if (!(scales[r] > 0)) continue;
    const size_t at = r * width;
    loops.refine(moment_.values(), width, float(most_),
                 {&vectors_[at], &costs_[at], &components_[at], &gradients_[at], scales[r]});
    float product = 0;
    for (size_t d = 0; d < dim; ++d) product += components_[at + d] * vectors_[at + d];
    // Without it no scale makes the product exact. Only vectors of few dimensions may come to that.
    if (!(product > 0)) continue;
    for (size_t d = 0; d < dim; ++d) codes[at + d] = uint8_t((int32_t(components_[at + d]) + most_) / 2);
  }
}

}  // namespace maxsimd
