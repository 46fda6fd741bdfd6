// A query packed for a kernel, with scales and offsets that differ from token to token.
#pragma once

#include "runtime/aligned.h"
#include "kernels/dispatch.h"

#include <cstdint>
#include <vector>

namespace maxsimd::test {

struct PreparedQuery {
  AlignedVector<uint8_t> packed;
  AlignedVector<float> scales, offsets;
  PackedQuery query;

  /// `vectors` are int8 [tokens x dim]; scales are small multiples of `scaleStep`.
  PreparedQuery(const Kernel& kernel, const std::vector<int8_t>& vectors, RowShape shape, uint32_t tokens,
                float scaleStep)
      : packed(kernel.packedBytes(shape, tokens)), scales(paddedTokens(tokens)), offsets(paddedTokens(tokens)) {
    kernel.pack(vectors.data(), shape, tokens, packed.data());
    for (uint32_t i = 0; i < tokens; ++i) {
      scales[i] = scaleStep * float(i % 7 + 1);
      offsets[i] = 0.25f * float(i % 5) - 0.5f;
    }
    query = {shape.dim, tokens, paddedTokens(tokens), packed.data(), scales.data(), offsets.data(), shape.bits};
  }
};

}  // namespace maxsimd::test
