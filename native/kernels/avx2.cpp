// AVX2: lanes are query tokens, 8 to a register, in 16-bit integers.
//
// The query is packed as int16 pairs, [tile of 16 tokens][dim/2][16 tokens][2]; a block of document rows is
// widened to int16 once and then broadcast two dimensions at a time into vpmaddwd. That costs the same two
// multiplies per 32 products as the 8-bit vpmaddubsw + vpmaddwd pair, needs no sign juggling, and cannot
// saturate: a pair is at most 2 * 128 * 128 and a dot at most 2^24.
#if defined(__x86_64__)

#include "kernels/dispatch.h"
#include "kernels/half.h"

#include <immintrin.h>

#include <cstring>

#define TARGET __attribute__((target("avx2,f16c")))
#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline

namespace maxsimd {
namespace {

std::atomic<uint64_t> calls{0};

constexpr size_t prefetchBytes = 5120;
constexpr uint32_t blockRows = 6;
constexpr uint32_t tileTokens = 16;

size_t packedBytes(uint32_t dim, uint32_t tokens) {
  return size_t((dim + 1) / 2) * 4 * paddedTokens(tokens);
}

void pack(const int8_t* vectors, uint32_t dim, uint32_t tokens, void* packed) {
  const uint32_t steps = (dim + 1) / 2;
  auto* out = static_cast<int16_t*>(packed);
  std::memset(out, 0, packedBytes(dim, tokens));
  for (uint32_t i = 0; i < tokens; ++i) {
    int16_t* base = out + size_t(i / tileTokens) * steps * tileTokens * 2 + (i % tileTokens) * 2;
    for (uint32_t d = 0; d < dim; ++d) base[size_t(d / 2) * tileTokens * 2 + d % 2] = vectors[size_t(i) * dim + d];
  }
}

/// A block of document rows as int16. The stride is a cache line longer than the row needs: rows a power of two
/// apart would compete for the same cache sets.
struct Rows {
  static constexpr uint32_t stride = dimMax + 32;
  alignas(64) int16_t vector[blockRows * stride];
  float scale[blockRows];
};

TARGET_INLINE void loadRows(Rows& rows, const Chunk& chunk, uint32_t first, uint32_t dim) {
  for (uint32_t r = 0; r < blockRows; ++r) {
    const uint32_t row = first + r < chunk.rows ? first + r : chunk.rows - 1;
    const int8_t* vector = chunk.vectors + size_t(row) * dim;
    // The last step reads up to 15 bytes past the row; the query is zero there.
    for (uint32_t d = 0; d < dim; d += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(vector + d));
      _mm256_store_si256(reinterpret_cast<__m256i*>(rows.vector + r * Rows::stride + d), _mm256_cvtepi8_epi16(bytes));
    }
    rows.scale[r] = _cvtsh_ss(chunk.scales[row]);
  }
}

enum class Out { maximum, arguments, all };

struct Target {
  float* best;
  uint32_t* row;
  float* all;
  uint32_t stride;
  uint32_t rowFirst;
  uint32_t rowLast;
};

/// What happens to one row's dots with 8 tokens.
template <Out out>
TARGET_INLINE void emit(__m256i dots, const Rows& rows, uint32_t r, const Target& target, uint32_t token,
                        __m256& best, __m256i& arg) {
  const __m256 sim = _mm256_mul_ps(_mm256_cvtepi32_ps(dots), _mm256_set1_ps(rows.scale[r]));
  if constexpr (out == Out::maximum) best = _mm256_max_ps(best, sim);
  const uint32_t row = target.rowFirst + r < target.rowLast ? target.rowFirst + r : target.rowLast;
  if constexpr (out == Out::arguments) {
    const __m256 greater = _mm256_cmp_ps(sim, best, _CMP_GT_OQ);
    best = _mm256_blendv_ps(best, sim, greater);
    arg = _mm256_blendv_epi8(arg, _mm256_set1_epi32(int32_t(row)), _mm256_castps_si256(greater));
  }
  if constexpr (out == Out::all) _mm256_storeu_ps(target.all + size_t(row) * target.stride + token, sim);
}

/// accumulator += dot2(query, document) per lane. Spelled as assembly because g++ 12 spills the accumulators
/// of the intrinsics in this loop (82 instead of 53 ns a row of 128
/// dimensions against 32 tokens on Zen 4).
TARGET_INLINE void accumulate(__m256i& accumulator, __m256i query, __m256i document) {
  __m256i product;
  __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
          : "+x"(accumulator), "=&x"(product)
          : "x"(query), "x"(document));
}

// Named accumulators: g++ 12 keeps an array of them on the stack. `a` = tokens 0-7, `b` = tokens 8-15.
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)

template <Out out>
TARGET_INLINE void tile(const int16_t* query, uint32_t steps, const Rows& rows, const Target& target,
                        uint32_t token) {
#define DECLARE(r) __m256i a##r = _mm256_setzero_si256(), b##r = _mm256_setzero_si256();
  EACH_ROW(DECLARE)
#undef DECLARE
  const int16_t* documents = rows.vector;
  for (uint32_t s = 0; s < steps; ++s) {
    const __m256i qa = _mm256_load_si256(reinterpret_cast<const __m256i*>(query));
    const __m256i qb = _mm256_load_si256(reinterpret_cast<const __m256i*>(query + 16));
    query += 2 * tileTokens;
#define STEP(r)                                                \
  {                                                            \
    int32_t two;                                               \
    std::memcpy(&two, documents + r * Rows::stride, 4);              \
    const __m256i d = _mm256_set1_epi32(two);                  \
    accumulate(a##r, qa, d);                                   \
    accumulate(b##r, qb, d);                                   \
  }
    EACH_ROW(STEP)
#undef STEP
    documents += 2;
  }
  __m256 bestA = _mm256_setzero_ps(), bestB = _mm256_setzero_ps();
  __m256i argA = _mm256_setzero_si256(), argB = _mm256_setzero_si256();
  if constexpr (out != Out::all) {
    bestA = _mm256_load_ps(target.best + token);
    bestB = _mm256_load_ps(target.best + token + 8);
  }
  if constexpr (out == Out::arguments) {
    argA = _mm256_load_si256(reinterpret_cast<const __m256i*>(target.row + token));
    argB = _mm256_load_si256(reinterpret_cast<const __m256i*>(target.row + token + 8));
  }
#define EMIT(r)                                            \
  emit<out>(a##r, rows, r, target, token, bestA, argA);    \
  emit<out>(b##r, rows, r, target, token + 8, bestB, argB);
  EACH_ROW(EMIT)
#undef EMIT
  if constexpr (out != Out::all) {
    _mm256_store_ps(target.best + token, bestA);
    _mm256_store_ps(target.best + token + 8, bestB);
  }
  if constexpr (out == Out::arguments) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(target.row + token), argA);
    _mm256_store_si256(reinterpret_cast<__m256i*>(target.row + token + 8), argB);
  }
}

template <Out out>
TARGET_INLINE void block(const PackedQuery& query, const Chunk& chunk, uint32_t first, Rows& rows, Target& target) {
  loadRows(rows, chunk, first, query.dim);
  target.rowFirst = first;
  const uint32_t steps = (query.dim + 1) / 2;
  const auto* packed = static_cast<const int16_t*>(query.packed);
  for (uint32_t token = 0; token < query.tokensPadded; token += tileTokens) {
    tile<out>(packed + size_t(token) * steps * 2, steps, rows, target, token);
  }
}

TARGET_INLINE void prefetch(const int8_t* from, size_t bytes) {
  for (size_t b = 0; b < bytes; b += 64) _mm_prefetch(reinterpret_cast<const char*>(from) + b, _MM_HINT_T0);
}

TARGET void maxsim(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
  calls.fetch_add(1, std::memory_order_relaxed);
  alignas(64) float best[queryTokensMax];
  Rows rows;
  const size_t blockBytes = size_t(blockRows) * query.dim;
  for (size_t c = 0; c < count; ++c) {
    const Chunk& chunk = chunks[c];
    const Chunk& next = chunks[c + 1 < count ? c + 1 : c];
    prefetch(reinterpret_cast<const int8_t*>(next.scales), size_t(next.rows) * 2);
    for (uint32_t i = 0; i < query.tokensPadded; i += 8) {
      _mm256_store_ps(best + i, _mm256_set1_ps(-__builtin_inff()));
    }
    Target target{best, nullptr, nullptr, 0, 0, chunk.rows - 1};
    const size_t chunkBytes = size_t(chunk.rows) * query.dim;
    const size_t nextBytes = size_t(next.rows) * query.dim;
    for (uint32_t first = 0; first < chunk.rows; first += blockRows) {
      const size_t ahead = size_t(first) * query.dim + prefetchBytes;
      if (ahead < chunkBytes) {
        prefetch(chunk.vectors + ahead, blockBytes);
      } else if (ahead - chunkBytes < nextBytes) {
        prefetch(next.vectors + (ahead - chunkBytes), blockBytes);
      }
      block<Out::maximum>(query, chunk, first, rows, target);
    }
    scores[c] = finishScore(query, best);
  }
}

TARGET void best(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rowsOut) {
  calls.fetch_add(1, std::memory_order_relaxed);
  alignas(64) float best[queryTokensMax];
  alignas(64) uint32_t row[queryTokensMax];
  Rows rows;
  for (uint32_t i = 0; i < query.tokensPadded; ++i) {
    best[i] = i < query.tokens ? -__builtin_inff() : 0.0f;
    row[i] = 0;
  }
  Target target{best, row, nullptr, 0, 0, chunk.rows - 1};
  for (uint32_t first = 0; first < chunk.rows; first += blockRows) {
    block<Out::arguments>(query, chunk, first, rows, target);
  }
  std::memcpy(similarities, best, query.tokensPadded * sizeof(float));
  std::memcpy(rowsOut, row, query.tokensPadded * sizeof(uint32_t));
}

TARGET void similarities(const PackedQuery& query, const Chunk& chunk, float* out) {
  calls.fetch_add(1, std::memory_order_relaxed);
  Rows rows;
  Target target{nullptr, nullptr, out, query.tokensPadded, 0, chunk.rows - 1};
  for (uint32_t first = 0; first < chunk.rows; first += blockRows) {
    block<Out::all>(query, chunk, first, rows, target);
  }
}

TARGET int32_t dot(const int8_t* a, const int8_t* b, uint32_t dim) {
  __m256i sum = _mm256_setzero_si256();
  uint32_t d = 0;
  for (; d + 16 <= dim; d += 16) {
    const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + d)));
    const __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + d)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
  }
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  int32_t total = _mm_cvtsi128_si32(half);
  for (; d < dim; ++d) total += int32_t(a[d]) * int32_t(b[d]);
  return total;
}

}  // namespace

const Kernel avx2Kernel = {"avx2", [](const CpuFeatures& cpu) { return cpu.avx2; },
                           packedBytes, pack, maxsim, best, similarities, dot, &calls};

}  // namespace maxsimd

#endif
