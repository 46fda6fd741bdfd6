#include "engine/projection.h"

#include "kernels/half.h"

#include <algorithm>

namespace maxsimd {

void MeanProjection::projectChunk(const Chunk& chunk, float* out) const {
  std::fill_n(out, dim_, 0.0f);
  for (uint32_t j = 0; j < chunk.rows; ++j) {
    const float weight = halfToFloat(chunk.scales[j]) / float(chunk.rows);
    const int8_t* row = chunk.vectors + size_t(j) * dim_;
    for (uint32_t d = 0; d < dim_; ++d) out[d] += weight * float(row[d]);
  }
}

void MeanProjection::projectQuery(std::span<const float> vectors, float* out) const {
  std::fill_n(out, dim_, 0.0f);
  for (size_t i = 0; i < vectors.size(); ++i) out[i % dim_] += vectors[i];
}

}  // namespace maxsimd
