#include "runtime/query.h"

#include <algorithm>
#include <cmath>

namespace maxsimd {

Query::Query(const Kernel& kernel, std::span<const float> vectors, std::span<const float> offsets, uint32_t dim) {
  const auto tokens = uint32_t(offsets.size());
  std::vector<int8_t> quantised(vectors.size());
  scales_.assign(paddedTokens(tokens), 0.0f);
  offsets_.assign(paddedTokens(tokens), 0.0f);
  for (uint32_t i = 0; i < tokens; ++i) {
    const float* row = vectors.data() + size_t(i) * dim;
    float largest = 0.0f;
    for (uint32_t d = 0; d < dim; ++d) largest = std::max(largest, std::abs(row[d]));
    const float scale = largest / 127.0f;
    for (uint32_t d = 0; d < dim && scale > 0.0f; ++d) {
      quantised[size_t(i) * dim + d] = int8_t(std::clamp(std::nearbyint(row[d] / scale), -127.0f, 127.0f));
    }
    scales_[i] = scale;
    offsets_[i] = offsets[i];
  }
  pack(kernel, quantised.data(), tokens, dim);
}

Query::Query(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, uint32_t dim) {
  scales_.assign(paddedTokens(tokens), 0.0f);
  offsets_.assign(paddedTokens(tokens), 0.0f);
  std::fill_n(scales_.begin(), tokens, 1.0f);
  pack(kernel, vectors, tokens, dim);
}

void Query::pack(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, uint32_t dim) {
  bytes_.resize(kernel.packedBytes(dim, tokens));
  kernel.pack(vectors, dim, tokens, bytes_.data());
  packed_ = {dim, tokens, paddedTokens(tokens), bytes_.data(), scales_.data(), offsets_.data()};
}

}  // namespace maxsimd
