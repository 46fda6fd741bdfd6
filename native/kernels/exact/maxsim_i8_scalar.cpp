// The reference kernel: it follows the definition in contract.h word for word and is scalar on purpose.
#include "kernels/dispatch.h"
#include "kernels/half.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace maxsimd {
namespace {

std::atomic<uint64_t> calls{0};

size_t packedBytes(RowShape shape, uint32_t tokens) { return size_t(shape.dim) * tokens; }

void pack(const int8_t* vectors, RowShape shape, uint32_t tokens, void* packed) {
  std::memcpy(packed, vectors, size_t(shape.dim) * tokens);
}

int32_t dot(const int8_t* a, const int8_t* b, uint32_t dim) {
  int32_t sum = 0;
  for (uint32_t d = 0; d < dim; ++d) sum += int32_t(a[d]) * int32_t(b[d]);
  return sum;
}

/// Calls each(i, sim(i,j)) of the definition for all query tokens.
template <typename Each>
void similaritiesOf(const PackedQuery& query, const Chunk& chunk, uint32_t j, const Each& each) {
  const RowShape shape(query.dim, query.rowBits);
  int8_t row[dimMax];
  unpackRows(chunk.vectors + j * shape.bytes(), shape, 1, row);
  const auto* token = static_cast<const int8_t*>(query.packed);
  for (uint32_t i = 0; i < query.tokens; ++i, token += query.dim)
    each(i, float(dot(token, row, query.dim)) * halfToFloat(chunk.scales[j]));
}

void best(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rows) {
  calls.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t i = 0; i < query.tokensPadded; ++i) {
    similarities[i] = i < query.tokens ? -std::numeric_limits<float>::infinity() : 0.0f;
    rows[i] = 0;
  }
  for (uint32_t j = 0; j < chunk.rows; ++j) {
    similaritiesOf(query, chunk, j, [&](uint32_t i, float sim) {
      if (sim > similarities[i]) {
        similarities[i] = sim;
        rows[i] = j;
      }
    });
  }
}

void maxsim(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
  float similarities[queryTokensMax];
  uint32_t rows[queryTokensMax];
  for (size_t c = 0; c < count; ++c) {
    best(query, chunks[c], similarities, rows);
    scores[c] = finishScore(query, similarities);
  }
}

void similarities(const PackedQuery& query, const Chunk& chunk, float* out) {
  calls.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t j = 0; j < chunk.rows; ++j) {
    float* similarities = out + size_t(j) * query.tokensPadded;
    std::fill(similarities + query.tokens, similarities + query.tokensPadded, 0.0f);
    similaritiesOf(query, chunk, j, [&](uint32_t i, float sim) { similarities[i] = sim; });
  }
}

}  // namespace

const Kernel scalarKernel = {"scalar",     [](const CpuFeatures&) { return true; },
                             packedBytes,  pack,
                             maxsim,       best,
                             similarities, dot,
                             &calls,       &baselineCodeLoops};

}  // namespace maxsimd
