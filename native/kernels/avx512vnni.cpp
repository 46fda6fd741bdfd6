// AVX-512 VNNI: lanes are query tokens, 16 to a register.
//
// The query is packed as unsigned bytes (q + 128) in groups of four dimensions, [tile][dim/4][32 or 16
// tokens][4], so that vpdpbusd multiplies it by four document bytes broadcast from the row as it lies in
// the file: no repacking and no sign flip of documents. The bias is taken out by starting each row's
// accumulators at -128 * sum(row). Eight rows x two registers of tokens share each load of the query.
// Bounds: |sum of four u8*s8| <= 4*255*128 and |accumulator| <= 1024*255*128 + 128*1024*128 < 2^31;
// vpdpbusd does not saturate.
//
// A ragged tail is filled by repeating the last row, which a maximum does not notice.
#if defined(__x86_64__)

#include "kernels/dispatch.h"
#include "kernels/half.h"

#include <immintrin.h>

#include <cstring>

#define TARGET __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline

namespace maxsimd {
namespace {

std::atomic<uint64_t> calls{0};

constexpr size_t prefetchBytes = 5120;
constexpr uint32_t blockRows = 8;

size_t packedBytes(uint32_t dim, uint32_t tokens) {
  return size_t((dim + 3) / 4) * 4 * paddedTokens(tokens);
}

void pack(const int8_t* vectors, uint32_t dim, uint32_t tokens, void* packed) {
  const uint32_t steps = (dim + 3) / 4;
  auto* out = static_cast<uint8_t*>(packed);
  // Missing dimensions are 0, not 128: they multiply whatever lies behind the row by nothing. Missing tokens
  // are zero vectors.
  std::memset(out, 0, packedBytes(dim, tokens));
  const uint32_t padded = paddedTokens(tokens);
  for (uint32_t tile = 0; tile < padded; tile += 32) {
    const uint32_t width = padded - tile >= 32 ? 32 : 16;
    uint8_t* base = out + size_t(tile) * steps * 4;
    for (uint32_t i = tile; i < tile + width; ++i) {
      for (uint32_t d = 0; d < dim; ++d) {
        const int value = i < tokens ? vectors[size_t(i) * dim + d] : 0;
        base[(size_t(d / 4) * width + (i - tile)) * 4 + d % 4] = uint8_t(value + 128);
      }
    }
  }
}

struct Rows {
  const int8_t* vector[blockRows];
  /// -128 * sum(row).
  int32_t start[blockRows];
  float scale[blockRows];
};

/// 16 lanes that add up to sum(row), as 8.
TARGET_INLINE __m256i rowSum(const int8_t* row, uint32_t dim) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  uint32_t d = 0;
  for (; d + 64 <= dim; d += 64) sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(row + d));
  if (d < dim) {
    const __mmask64 mask = (uint64_t(1) << (dim - d)) - 1;
    sum = _mm512_dpbusd_epi32(sum, ones, _mm512_maskz_loadu_epi8(mask, row + d));
  }
  return _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
}

/// start[0..7] = -128 * sum(row) of eight rows: a tree of horizontal adds over all of them at once.
TARGET_INLINE void rowStarts(const int8_t* const* row, uint32_t dim, int32_t* start) {
  const __m256i s01 = _mm256_hadd_epi32(rowSum(row[0], dim), rowSum(row[1], dim));
  const __m256i s23 = _mm256_hadd_epi32(rowSum(row[2], dim), rowSum(row[3], dim));
  const __m256i s45 = _mm256_hadd_epi32(rowSum(row[4], dim), rowSum(row[5], dim));
  const __m256i s67 = _mm256_hadd_epi32(rowSum(row[6], dim), rowSum(row[7], dim));
  const __m256i low = _mm256_hadd_epi32(s01, s23);
  const __m256i high = _mm256_hadd_epi32(s45, s67);
  const __m256i sums = _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                                        _mm256_permute2x128_si256(low, high, 0x31));
  const __m256i starts = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(sums, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(start), starts);
}

TARGET_INLINE void loadRows(Rows& rows, const Chunk& chunk, uint32_t first, uint32_t dim) {
  uint16_t halves[blockRows];
  if (first + blockRows <= chunk.rows) {
    std::memcpy(halves, chunk.scales + first, sizeof halves);
    for (uint32_t r = 0; r < blockRows; ++r) rows.vector[r] = chunk.vectors + size_t(first + r) * dim;
  } else {
    for (uint32_t r = 0; r < blockRows; ++r) {
      const uint32_t row = first + r < chunk.rows ? first + r : chunk.rows - 1;
      halves[r] = chunk.scales[row];
      rows.vector[r] = chunk.vectors + size_t(row) * dim;
    }
  }
  _mm256_storeu_ps(rows.scale, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  rowStarts(rows.vector, dim, rows.start);
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

/// What happens to one row's dots with 16 tokens.
template <Out out>
TARGET_INLINE void emit(__m512i dots, const Rows& rows, uint32_t r, const Target& target, uint32_t token,
                        __m512& best, __m512i& arg) {
  const __m512 sim = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), _mm512_set1_ps(rows.scale[r]));
  if constexpr (out == Out::maximum) best = _mm512_max_ps(best, sim);
  const uint32_t row = target.rowFirst + r < target.rowLast ? target.rowFirst + r : target.rowLast;
  if constexpr (out == Out::arguments) {
    const __mmask16 greater = _mm512_cmp_ps_mask(sim, best, _CMP_GT_OQ);
    best = _mm512_mask_mov_ps(best, greater, sim);
    arg = _mm512_mask_mov_epi32(arg, greater, _mm512_set1_epi32(int32_t(row)));
  }
  if constexpr (out == Out::all) _mm512_storeu_ps(target.all + size_t(row) * target.stride + token, sim);
}

/// accumulator += dot4(query u8, document s8). Spelled as assembly because g++ 12 compiles the intrinsic in
/// this loop to register copies and spills (25.0 instead of 21.2 ns a row of 128 dimensions against 32 tokens on
/// Zen 4, whose limit is 17.5).
TARGET_INLINE void accumulate(__m512i& accumulator, __m512i query, __m512i document) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(accumulator) : "v"(query), "v"(document));
}

// Named accumulators: g++ 12 keeps an array of them on the stack. `a` = tokens 0-15, `b` = tokens 16-31.
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

template <Out out, int registers>
TARGET_INLINE void tile(const uint8_t* query, uint32_t steps, const Rows& rows, const Target& target,
                        uint32_t token) {
#define DECLARE(r)                                       \
  __m512i a##r = _mm512_set1_epi32(rows.start[r]);       \
  __m512i b##r = a##r;                                   \
  const int8_t* p##r = rows.vector[r];
  EACH_ROW(DECLARE)
#undef DECLARE
  for (uint32_t s = 0; s < steps; ++s) {
    const __m512i qa = _mm512_load_si512(query);
    const __m512i qb = registers == 2 ? _mm512_load_si512(query + 64) : qa;
    query += 64 * registers;
#define STEP(r)                                                   \
  {                                                               \
    int32_t four;                                                 \
    std::memcpy(&four, p##r + size_t(s) * 4, 4);                  \
    const __m512i d = _mm512_set1_epi32(four);                    \
    accumulate(a##r, qa, d);                                      \
    if (registers == 2) accumulate(b##r, qb, d);                  \
  }
    EACH_ROW(STEP)
#undef STEP
  }
  __m512 bestA = _mm512_setzero_ps(), bestB = _mm512_setzero_ps();
  __m512i argA = _mm512_setzero_si512(), argB = _mm512_setzero_si512();
  if constexpr (out != Out::all) {
    bestA = _mm512_load_ps(target.best + token);
    if (registers == 2) bestB = _mm512_load_ps(target.best + token + 16);
  }
  if constexpr (out == Out::arguments) {
    argA = _mm512_load_si512(target.row + token);
    if (registers == 2) argB = _mm512_load_si512(target.row + token + 16);
  }
#define EMIT(r)                                                            \
  emit<out>(a##r, rows, r, target, token, bestA, argA);                    \
  if (registers == 2) emit<out>(b##r, rows, r, target, token + 16, bestB, argB);
  EACH_ROW(EMIT)
#undef EMIT
  if constexpr (out != Out::all) {
    _mm512_store_ps(target.best + token, bestA);
    if (registers == 2) _mm512_store_ps(target.best + token + 16, bestB);
  }
  if constexpr (out == Out::arguments) {
    _mm512_store_si512(target.row + token, argA);
    if (registers == 2) _mm512_store_si512(target.row + token + 16, argB);
  }
}

template <Out out>
TARGET_INLINE void block(const PackedQuery& query, const Chunk& chunk, uint32_t first, Target& target) {
  Rows rows;
  loadRows(rows, chunk, first, query.dim);
  target.rowFirst = first;
  const uint32_t steps = (query.dim + 3) / 4;
  const auto* packed = static_cast<const uint8_t*>(query.packed);
  uint32_t token = 0;
  for (; token + 32 <= query.tokensPadded; token += 32) {
    tile<out, 2>(packed + size_t(token) * steps * 4, steps, rows, target, token);
  }
  if (token < query.tokensPadded) {
    tile<out, 1>(packed + size_t(token) * steps * 4, steps, rows, target, token);
  }
}

TARGET_INLINE void prefetch(const int8_t* from, size_t bytes) {
  for (size_t b = 0; b < bytes; b += 64) _mm_prefetch(reinterpret_cast<const char*>(from) + b, _MM_HINT_T0);
}

TARGET void maxsim(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
  calls.fetch_add(1, std::memory_order_relaxed);
  alignas(64) float best[queryTokensMax];
  const size_t blockBytes = size_t(blockRows) * query.dim;
  for (size_t c = 0; c < count; ++c) {
    const Chunk& chunk = chunks[c];
    const Chunk& next = chunks[c + 1 < count ? c + 1 : c];
    prefetch(reinterpret_cast<const int8_t*>(next.scales), size_t(next.rows) * 2);
    for (uint32_t i = 0; i < query.tokensPadded; i += 16) {
      _mm512_store_ps(best + i, _mm512_set1_ps(-__builtin_inff()));
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
      block<Out::maximum>(query, chunk, first, target);
    }
    scores[c] = finishScore(query, best);
  }
}

TARGET void best(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rows) {
  calls.fetch_add(1, std::memory_order_relaxed);
  alignas(64) float best[queryTokensMax];
  alignas(64) uint32_t row[queryTokensMax];
  for (uint32_t i = 0; i < query.tokensPadded; ++i) {
    best[i] = i < query.tokens ? -__builtin_inff() : 0.0f;
    row[i] = 0;
  }
  Target target{best, row, nullptr, 0, 0, chunk.rows - 1};
  for (uint32_t first = 0; first < chunk.rows; first += blockRows) {
    block<Out::arguments>(query, chunk, first, target);
  }
  std::memcpy(similarities, best, query.tokensPadded * sizeof(float));
  std::memcpy(rows, row, query.tokensPadded * sizeof(uint32_t));
}

TARGET void similarities(const PackedQuery& query, const Chunk& chunk, float* out) {
  calls.fetch_add(1, std::memory_order_relaxed);
  Target target{nullptr, nullptr, out, query.tokensPadded, 0, chunk.rows - 1};
  for (uint32_t first = 0; first < chunk.rows; first += blockRows) {
    block<Out::all>(query, chunk, first, target);
  }
}

TARGET int32_t dot(const int8_t* a, const int8_t* b, uint32_t dim) {
  // (a + 128) . b - 128 * sum(b): the sign bit flipped makes a unsigned. Masked bytes of b are 0.
  const __m512i flip = _mm512_set1_epi8(int8_t(0x80));
  __m512i products = _mm512_setzero_si512(), sums = _mm512_setzero_si512();
  for (uint32_t d = 0; d < dim; d += 64) {
    const __mmask64 mask = dim - d >= 64 ? ~uint64_t(0) : (uint64_t(1) << (dim - d)) - 1;
    const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, a + d), flip);
    const __m512i y = _mm512_maskz_loadu_epi8(mask, b + d);
    products = _mm512_dpbusd_epi32(products, x, y);
    sums = _mm512_dpbusd_epi32(sums, flip, y);
  }
  return _mm512_reduce_add_epi32(_mm512_sub_epi32(products, sums));
}

}  // namespace

const Kernel avx512vnniKernel = {"avx512vnni", [](const CpuFeatures& cpu) { return cpu.avx512vnni; },
                                 packedBytes, pack, maxsim, best, similarities, dot, &calls};

}  // namespace maxsimd

#endif
