// The floating-point reference: the definition in contract.h word for word.
#include "kernels/dispatch.h"
#include "kernels/half.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace maxsimd {
namespace {

std::atomic<uint64_t> calls{0};

size_t packedBytes(uint32_t dim, uint32_t tokens) { return sizeof(float) * dim * tokens; }

void pack(const float* vectors, uint32_t dim, uint32_t tokens, void* packed) {
  std::memcpy(packed, vectors, packedBytes(dim, tokens));
}

float widened(float value) { return value; }
float widened(uint16_t half) { return halfToFloat(half); }

template <typename Element>
void maxsim(const PackedQuery& query, const FloatChunk* chunks, size_t count, float* scores) {
  calls.fetch_add(1, std::memory_order_relaxed);
  const auto* vectors = static_cast<const float*>(query.packed);
  float best[queryTokensMax] = {};
  for (size_t c = 0; c < count; ++c) {
    const auto* document = static_cast<const Element*>(chunks[c].vectors);
    for (uint32_t i = 0; i < query.tokens; ++i) {
      best[i] = -std::numeric_limits<float>::infinity();
      for (uint32_t j = 0; j < chunks[c].rows; ++j) {
        float dot = 0.0f;
        for (uint32_t d = 0; d < query.dim; ++d) {
          dot = std::fma(vectors[size_t(i) * query.dim + d], widened(document[size_t(j) * query.dim + d]), dot);
        }
        if (dot > best[i]) best[i] = dot;
      }
    }
    scores[c] = finishScore(query, best);
  }
}

}  // namespace

const FloatKernel scalarFloatKernel = {"scalar", [](const CpuFeatures&) { return true; }, packedBytes, pack,
                                       maxsim<float>, maxsim<uint16_t>, &calls};

}  // namespace maxsimd
