// AMX int8: a tile of 16 document rows x 16 query tokens, 64 dimensions a step, signed on both sides.
//
// Documents are loaded as they lie in the file, 16 rows of 64 bytes with stride = dim: the left operand of TDPBSSD. The
// query is packed once as the right operand, [tile of 16 tokens][steps][16 groups of dimensions][16 tokens][4]. Two
// tiles of rows x two tiles of tokens share their loads. AVX-512 scales and compares the sums of one block while the
// tiles multiply the next.
//
// Zeros of the query multiply what a tile reads past a row. The last tiles of a chunk move back to be full. A chunk of
// fewer than 16 rows is copied, with its last row repeated. Neither changes a maximum.
#if defined(__x86_64__)

#if !defined(TARGET)
#define TARGET __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,amx-tile,amx-int8")))
#endif

#include "kernels/exact/amx_tiles.h"
#include "kernels/exact/lanes512.h"

#include <algorithm>

namespace maxsimd {
namespace {

constexpr uint32_t tileRows = 16;
constexpr uint32_t tileTokens = 16;
constexpr uint32_t tileDims = 64;
constexpr uint32_t tileBytes = 1024;

uint32_t stepsOf(uint32_t dim) { return (dim + tileDims - 1) / tileDims; }

/// Tiles 0-3 hold sums of (rows, tokens) = (low, low), (low, high), (high, low), (high, high); 4 and 5 rows; 6 and 7
/// tokens.
TARGET_INLINE void configure() {
  TileConfiguration configuration;
  for (int t = 0; t < 8; ++t) {
    configuration.rowBytes[t] = 64;
    configuration.rows[t] = tileRows;
  }
  TILE_CONFIGURE(&configuration);
}

/// A block of 16 or 32 consecutive rows, and its sums with up to 32 tokens.
struct Block {
  alignas(64) int32_t sums[4][tileRows][tileTokens];
  alignas(64) float scale[2 * tileRows];
  /// Row of the chunk.
  uint32_t first;
  uint32_t token;
  bool highRows;
  bool highTokens;
};

/// Rows of int8 components, `stride` bytes from one to the next.
struct TileRows {
  const int8_t* rows;
  size_t stride;
};

/// Writes the dot products of rows with the tokens packed at `query` to block.sums.
template <bool highRows, bool highTokens>
TARGET_INLINE void multiply(const TileRows& from, uint32_t dim, const int8_t* query, Block& block) {
  const auto [rows, stride] = from;
  const int8_t* high = rows + tileRows * stride;
  const size_t tokenStride = size_t(stepsOf(dim)) * tileBytes;
  TILE_ZERO(0);
  if (highTokens) TILE_ZERO(1);
  if (highRows) TILE_ZERO(2);
  if (highRows && highTokens) TILE_ZERO(3);
  for (uint32_t d = 0; d < dim; d += tileDims, query += tileBytes) {
    TILE_LOAD(4, rows + d, stride);
    TILE_LOAD(6, query, 64);
    TILE_DOT(0, 4, 6);
    if (highTokens) {
      TILE_LOAD(7, query + tokenStride, 64);
      TILE_DOT(1, 4, 7);
    }
    if (highRows) {
      TILE_LOAD(5, high + d, stride);
      TILE_DOT(2, 5, 6);
    }
    if (highRows && highTokens) TILE_DOT(3, 5, 7);
  }
  TILE_STORE(0, block.sums[0], 64);
  if (highTokens) TILE_STORE(1, block.sums[1], 64);
  if (highRows) TILE_STORE(2, block.sums[2], 64);
  if (highRows && highTokens) TILE_STORE(3, block.sums[3], 64);
}

TARGET_INLINE void multiplyBlock(const TileRows& rows, uint32_t dim, const int8_t* query, Block& block) {
  if (block.highRows && block.highTokens) return multiply<true, true>(rows, dim, query, block);
  if (block.highRows) return multiply<true, false>(rows, dim, query, block);
  if (block.highTokens) return multiply<false, true>(rows, dim, query, block);
  multiply<false, false>(rows, dim, query, block);
}

/// The components of a block's rows of few bits.
struct Unpacked {
  static constexpr size_t stride = dimMax + tileDims;
  alignas(64) int8_t vectors[2 * tileRows * stride];
};

/// `count` rows for tiles: as they are stored if that is int8, else unpacked into `out`.
template <uint32_t bits>
TARGET_INLINE TileRows tileRowsOf(const int8_t* stored, uint32_t dim, uint32_t count, Unpacked& out) {
  if constexpr (bits == 8) {
    return {stored, dim};
  } else {
    const size_t rowBytes = RowShape(dim, bits).bytes();
    const __m512i most = _mm512_set1_epi8(componentMost(bits));
    for (uint32_t r = 0; r < count; ++r) {
      for (uint32_t d = 0; d < dim; d += tileDims) {
        const __m512i twice = twiceCodes512<bits>(stored + r * rowBytes + d * bits / 8);
        _mm512_store_si512(out.vectors + r * Unpacked::stride + d, _mm512_sub_epi8(twice, most));
      }
    }
    return {out.vectors, Unpacked::stride};
  }
}

enum class Out { maximum, arguments, all };

struct Target {
  float* best;
  uint32_t* row;
  float* all;
  uint32_t stride;
  uint32_t rowLast;
};

/// Scales and reduces the sums of `multiply`.
template <Out out>
TARGET_INLINE void reduce(const Block& block, const Target& target) {
  for (uint32_t half = 0; half < (block.highTokens ? 2 : 1); ++half) {
    const uint32_t token = block.token + half * tileTokens;
    __m512 best = _mm512_setzero_ps();
    __m512i argument = _mm512_setzero_si512();
    if constexpr (out != Out::all) best = Lanes512::loadFloats(target.best + token);
    if constexpr (out == Out::arguments) argument = Lanes512::load(target.row + token);
    for (uint32_t r = 0; r < (block.highRows ? 2 : 1) * tileRows; ++r) {
      const int32_t* sums = block.sums[r / tileRows * 2 + half][r % tileRows];
      const __m512 similarity = Lanes512::scaled(Lanes512::load(sums), block.scale[r]);
      const uint32_t row = block.first + r < target.rowLast ? block.first + r : target.rowLast;
      if constexpr (out == Out::maximum) best = Lanes512::maximum(best, similarity);
      if constexpr (out == Out::arguments) Lanes512::keep(best, argument, similarity, row);
      if constexpr (out == Out::all) Lanes512::store(target.all + size_t(row) * target.stride + token, similarity);
    }
    if constexpr (out != Out::all) Lanes512::store(target.best + token, best);
    if constexpr (out == Out::arguments) Lanes512::store(target.row + token, argument);
  }
}

/// Two blocks: one is multiplied while the other is reduced.
struct Blocks {
  Block block[2];
  uint32_t current = 0;
  bool pending = false;
};

TARGET_INLINE void widen(const uint16_t* halves, float* out) {
  _mm512_store_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves))));
}

/// A chunk of fewer than 16 rows, lengthened to 16 by repeating the last one.
struct ShortChunk {
  alignas(64) int8_t vectors[tileRows * dimMax + tileDims];
  uint16_t scales[tileRows];
};

Chunk lengthened(const Chunk& chunk, size_t rowBytes, ShortChunk& out) {
  for (uint32_t r = 0; r < tileRows; ++r) {
    const uint32_t row = r < chunk.rows ? r : chunk.rows - 1;
    std::memcpy(out.vectors + r * rowBytes, chunk.vectors + row * rowBytes, rowBytes);
    out.scales[r] = chunk.scales[row];
  }
  std::memset(out.vectors + tileRows * rowBytes, 0, tileDims);
  return {out.vectors, out.scales, tileRows};
}

/// Multiplies all blocks of a chunk of at least 16 rows with all tokens. The last block is left for `finish` to reduce.
template <Out out, uint32_t bits>
TARGET_INLINE void multiplyChunk(const PackedQuery& query, const Chunk& chunk, const Target& target, Blocks& blocks,
                                 RowsAhead& ahead) {
  const size_t rowBytes = RowShape(query.dim, bits).bytes();
  Unpacked unpacked;
  uint32_t count;
  for (uint32_t first = 0; first < chunk.rows; first += count) {
    const uint32_t left = chunk.rows - first;
    const bool highRows = left > tileRows && chunk.rows >= 2 * tileRows;
    count = highRows ? 2 * tileRows : tileRows;
    for (uint32_t tile = 0; tile < count; tile += tileRows, ahead.advance()) {
      const size_t bytes = std::min(ahead.count(), tileRows) * rowBytes;
      for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(ahead.rows() + at);
    }
    const uint32_t start = left < count ? chunk.rows - count : first;
    const TileRows rows = tileRowsOf<bits>(chunk.vectors + start * rowBytes, query.dim, count, unpacked);
    for (uint32_t token = 0; token < query.tokensPadded; token += 2 * tileTokens) {
      Block& block = blocks.block[blocks.current];
      block.first = start;
      block.token = token;
      block.highRows = highRows;
      block.highTokens = query.tokensPadded - token > tileTokens;
      const auto* packed = static_cast<const int8_t*>(query.packed);
      multiplyBlock(rows, query.dim, packed + size_t(token / tileTokens) * stepsOf(query.dim) * tileBytes, block);
      widen(chunk.scales + start, block.scale);
      if (highRows) widen(chunk.scales + start + tileRows, block.scale + tileRows);
      blocks.current ^= 1;
      if (blocks.pending) reduce<out>(blocks.block[blocks.current], target);
      blocks.pending = true;
    }
  }
}

template <Out out>
TARGET_INLINE void finish(const Target& target, Blocks& blocks) {
  if (blocks.pending) reduce<out>(blocks.block[blocks.current ^ 1], target);
  blocks.pending = false;
}

template <Out out, uint32_t bits>
TARGET_INLINE void oneChunk(const PackedQuery& query, const Chunk& chunk, const Target& target) {
  const size_t rowBytes = RowShape(query.dim, bits).bytes();
  ShortChunk shortChunk;
  Blocks blocks;
  configure();
  const Chunk whole = chunk.rows < tileRows ? lengthened(chunk, rowBytes, shortChunk) : chunk;
  RowsAhead ahead(&chunk, 1, rowBytes, tileRows, Lanes512::prefetchBytes);
  multiplyChunk<out, bits>(query, whole, target, blocks, ahead);
  finish<out>(target, blocks);
  TILE_RELEASE();
}

/// For rows of so many bits.
template <uint32_t bits>
struct Rows {
  static size_t packedBytes(RowShape shape, uint32_t tokens) {
    return size_t(stepsOf(shape.dim)) * tileBytes * (paddedTokens(tokens) / tileTokens);
  }

  static void pack(const int8_t* vectors, RowShape shape, uint32_t tokens, void* packed) {
    packTiles<int8_t, 0>(vectors, shape.dim, tokens, stepsOf(shape.dim) * (tileDims / 4), tileTokens,
                         paddedTokens(tokens), static_cast<int32_t*>(packed));
  }

  TARGET static void maxsim(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
    calls.fetch_add(1, std::memory_order_relaxed);
    alignas(64) float best[queryTokensMax];
    const size_t rowBytes = RowShape(query.dim, bits).bytes();
    ShortChunk shortChunk;
    Blocks blocks;
    RowsAhead ahead(chunks, count, rowBytes, tileRows, Lanes512::prefetchBytes);
    configure();
    for (size_t c = 0; c < count; ++c) {
      const Chunk chunk = chunks[c].rows < tileRows ? lengthened(chunks[c], rowBytes, shortChunk) : chunks[c];
      for (uint32_t i = 0; i < query.tokensPadded; i += 16) {
        Lanes512::store(best + i, Lanes512::fill(-__builtin_inff()));
      }
      const Target target{best, nullptr, nullptr, 0, chunks[c].rows - 1};
      multiplyChunk<Out::maximum, bits>(query, chunk, target, blocks, ahead);
      finish<Out::maximum>(target, blocks);
      scores[c] = finishScore(query, best);
    }
    TILE_RELEASE();
  }

  TARGET static void best(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rows) {
    calls.fetch_add(1, std::memory_order_relaxed);
    alignas(64) float best[queryTokensMax];
    alignas(64) uint32_t row[queryTokensMax];
    for (uint32_t i = 0; i < query.tokensPadded; ++i) {
      best[i] = i < query.tokens ? -__builtin_inff() : 0.0f;
      row[i] = 0;
    }
    oneChunk<Out::arguments, bits>(query, chunk, {best, row, nullptr, 0, chunk.rows - 1});
    std::memcpy(similarities, best, query.tokensPadded * sizeof(float));
    std::memcpy(rows, row, query.tokensPadded * sizeof(uint32_t));
  }

  TARGET static void similarities(const PackedQuery& query, const Chunk& chunk, float* out) {
    calls.fetch_add(1, std::memory_order_relaxed);
    oneChunk<Out::all, bits>(query, chunk, {nullptr, nullptr, out, query.tokensPadded, chunk.rows - 1});
  }
};

}  // namespace

const Kernel amxKernel =
    ByRowBits<Rows>::kernel("amx", [](const CpuFeatures& cpu) { return cpu.amx; }, dot, &avx2CodeLoops);

}  // namespace maxsimd

#endif
