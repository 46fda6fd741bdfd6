// The shape shared by floating-point kernels: lanes are query tokens, as in lanes.h, and each lane adds up its dot
// over the dimensions in order. The query is packed as [tile of 16 tokens][dim][16 tokens].
//
// Included after TARGET is defined. `Ops` supplies Floats, lanes (16 or 8), rows (at most 8), zero, loadFloats, store,
// fill, broadcast, fusedAdd(sum, query, document), maximum, and widen(halves, 8 floats).
#pragma once

#include "kernels/dispatch.h"
#include "kernels/half.h"
#include "kernels/target.h"

#include <cstring>

namespace maxsimd {
namespace {

template <typename Ops>
struct FloatLaneKernel {
  using Floats = typename Ops::Floats;
  static constexpr uint32_t lanes = Ops::lanes;
  static constexpr uint32_t tileTokens = 16;
  static constexpr bool two = lanes * 2 == tileTokens;

  static inline std::atomic<uint64_t> calls{0};

  static size_t packedBytes(uint32_t dim, uint32_t tokens) { return sizeof(float) * dim * paddedTokens(tokens); }

  static void pack(const float* vectors, uint32_t dim, uint32_t tokens, void* packed) {
    std::memset(packed, 0, packedBytes(dim, tokens));
    auto* out = static_cast<float*>(packed);
    for (uint32_t i = 0; i < tokens; ++i) {
      float* tile = out + size_t(i / tileTokens) * dim * tileTokens + i % tileTokens;
      for (uint32_t d = 0; d < dim; ++d) tile[size_t(d) * tileTokens] = vectors[size_t(i) * dim + d];
    }
  }

  /// Where the rows of a block are; halves are widened into `widened` first.
  struct Rows {
    const float* row[Ops::rows];
    alignas(64) float widened[Ops::rows][dimMax + 16];
  };

  template <typename Element>
  TARGET_INLINE void locate(Rows& rows, const FloatChunk& chunk, uint32_t first, uint32_t dim) {
    for (uint32_t r = 0; r < Ops::rows; ++r) {
      const uint32_t row = first + r < chunk.rows ? first + r : chunk.rows - 1;
      const Element* from = static_cast<const Element*>(chunk.vectors) + size_t(row) * dim;
      if constexpr (sizeof(Element) == sizeof(float)) {
        rows.row[r] = from;
      } else {
        uint32_t d = 0;
        for (; d + 8 <= dim; d += 8) Ops::widen(from + d, rows.widened[r] + d);
        for (; d < dim; ++d) rows.widened[r][d] = halfToFloat(from[d]);
        rows.row[r] = rows.widened[r];
      }
    }
  }

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

  TARGET_INLINE void tile(const float* query, uint32_t dim, const Rows& rows, float* best) {
#define DECLARE(r)                                                          \
  [[maybe_unused]] Floats a##r = Ops::zero(), b##r = Ops::zero();           \
  [[maybe_unused]] const float* p##r = rows.row[r < Ops::rows ? r : 0];
    EACH_ROW(DECLARE)
#undef DECLARE
    for (uint32_t d = 0; d < dim; ++d) {
      const Floats queryA = Ops::loadFloats(query);
      [[maybe_unused]] const Floats queryB = two ? Ops::loadFloats(query + lanes) : queryA;
      query += tileTokens;
#define STEP(r)                                              \
  if constexpr (r < Ops::rows) {                             \
    const Floats document = Ops::broadcast(p##r + d);        \
    Ops::fusedAdd(a##r, queryA, document);                   \
    if constexpr (two) Ops::fusedAdd(b##r, queryB, document); \
  }
      EACH_ROW(STEP)
#undef STEP
    }
    Floats bestA = Ops::loadFloats(best);
    [[maybe_unused]] Floats bestB = two ? Ops::loadFloats(best + lanes) : bestA;
#define EMIT(r)                                                 \
  if constexpr (r < Ops::rows) {                                \
    bestA = Ops::maximum(bestA, a##r);                          \
    if constexpr (two) bestB = Ops::maximum(bestB, b##r);       \
  }
    EACH_ROW(EMIT)
#undef EMIT
    Ops::store(best, bestA);
    if constexpr (two) Ops::store(best + lanes, bestB);
  }
#undef EACH_ROW

  template <typename Element>
  TARGET static void maxsim(const PackedQuery& query, const FloatChunk* chunks, size_t count, float* scores) {
    calls.fetch_add(1, std::memory_order_relaxed);
    alignas(64) float best[queryTokensMax];
    Rows rows;
    for (size_t c = 0; c < count; ++c) {
      for (uint32_t i = 0; i < query.tokensPadded; i += lanes) Ops::store(best + i, Ops::fill(-__builtin_inff()));
      for (uint32_t first = 0; first < chunks[c].rows; first += Ops::rows) {
        locate<Element>(rows, chunks[c], first, query.dim);
        for (uint32_t token = 0; token < query.tokensPadded; token += tileTokens) {
          tile(static_cast<const float*>(query.packed) + size_t(token) * query.dim, query.dim, rows, best + token);
        }
      }
      scores[c] = finishScore(query, best);
    }
  }

  static constexpr FloatKernel kernel(const char* name, bool (*required)(const CpuFeatures&)) {
    return {name, required, packedBytes, pack, maxsim<float>, maxsim<uint16_t>, &calls};
  }
};

}  // namespace
}  // namespace maxsimd
