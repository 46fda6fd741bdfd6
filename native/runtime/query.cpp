#include "runtime/query.h"

#include "kernels/small_values.h"

#include <algorithm>
#include <cmath>

namespace maxsimd {

namespace {

float scaleOf(const float* vector, uint32_t dim, Query::Values values) {
  // Rounding may raise each of the eight values by a half.
  if (values == Query::Values::small) return largestSumOfEight<float>(vector, dim) / float(smallSumMost - 4);
  float largest = 0.0f;
  for (uint32_t d = 0; d < dim; ++d) largest = std::max(largest, std::abs(vector[d]));
  return largest / 127.0f;
}

}  // namespace

Query::Query(const Kernel& kernel, std::span<const float> vectors, std::span<const float> offsets, RowShape shape,
             Values values)
    : quantised_(vectors.size()) {
  const uint32_t dim = shape.dim;
  const auto tokens = uint32_t(offsets.size());
  scales_.assign(paddedTokens(tokens), 0.0f);
  offsets_.assign(paddedTokens(tokens), 0.0f);
  for (uint32_t i = 0; i < tokens; ++i) {
    const float* row = vectors.data() + size_t(i) * dim;
    const float scale = scaleOf(row, dim, values);
    for (uint32_t d = 0; d < dim && scale > 0.0f; ++d) {
      quantised_[size_t(i) * dim + d] = int8_t(std::clamp(std::nearbyint(row[d] / scale), -127.0f, 127.0f));
    }
    scales_[i] = scale;
    offsets_[i] = offsets[i];
  }
  pack(kernel, quantised_.data(), tokens, shape);
}

Query::Query(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, RowShape shape) {
  scales_.assign(paddedTokens(tokens), 0.0f);
  offsets_.assign(paddedTokens(tokens), 0.0f);
  std::fill_n(scales_.begin(), tokens, 1.0f);
  pack(kernel, vectors, tokens, shape);
}

void Query::pack(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, RowShape shape) {
  bytes_.resize(kernel.packedBytes(shape, tokens));
  kernel.pack(vectors, shape, tokens, bytes_.data());
  packed_ = {shape.dim, tokens, paddedTokens(tokens), bytes_.data(), scales_.data(), offsets_.data(), shape.bits};
}

}  // namespace maxsimd
