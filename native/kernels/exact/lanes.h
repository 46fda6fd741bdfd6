// The frame of all kernels whose lanes are query tokens. A kernel adds its instructions.
//
// A lane holds the dot product of one query token with one document row, so nothing is added across lanes. The query is
// packed once as [tile][steps][tokens of the tile][group]: the `group` dimensions that fill 32 bits stand side by side.
// A block of document rows is converted to the same elements. Then 32 bits of a row at a time are broadcast to two
// registers of tokens. The next block is converted while this one is multiplied, so that no multiplication waits for a
// conversion. If documents are unsigned (value + 128), the accumulators of a tile start at -128 * sum(query), which
// stands before its steps.
//
// A block that is not full repeats its last row, which changes no maximum. Query tokens are padded with zeros to whole
// registers only: 17 tokens take three registers of 8, not four. `Narrow` is a register of fewer lanes for the last
// tokens: 17 tokens take one of 16 lanes and one of 8.
//
// Included by the source of one kernel, which first defines TARGET (see target.h). `Ops` supplies
//   Element, group            what a converted row is made of, and how many fill 32 bits
//   bits                      of a stored component
//   bias                      what is added to components so that they are unsigned; 0 = they stay signed
//   Ints, Floats, lanes       registers of one 32-bit lane per token
//   rows                      document rows in a block, even and at most 8
//   tileRows                  how many of them two registers of tokens meet at a time: all, or half of them
//   together                  steps whose products are added up in 16 bits before they are widened; 1 = none are
//   strip                     dimensions converted at a time, a multiple of 4
//   prefetchBytes             how far ahead memory is asked for
//   convert(from, out)        `strip` dimensions; may read `readPaddingBytes` past the row
//   widen(halves, out)        8 scales to f32
//   zero, load, broadcast, scaled(sum, scale)
//   accumulate(sum, query, document)      if `together` is 1, else
//   multiply(products, query, document), accumulate(products, query, document), addPairs(sum, products)
//   accumulateBoth(a, b, queryA, queryB, document)   optional: `accumulate` of two registers of tokens
//   loadFloats, store, fill, maximum, keep(best, arguments, similarities, row)
// and `Narrow` the same operations on registers, and
//   narrow(document)          the low lanes of a broadcast of `Ops`
#pragma once

#include "kernels/dispatch.h"
#include "kernels/exact/rows_ahead.h"
#include "kernels/half.h"
#include "kernels/target.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace maxsimd {
namespace {

/// Calls of the kernel of this source.
std::atomic<uint64_t> calls{0};

/// Packs int8 [tokens x dim] in the layout above, for `used` tokens, a multiple of 4. Four rows at a time become words
/// of four tokens side by side. Compilers turn these plain loops into shuffles of registers.
template <typename Element, int32_t bias>
TARGET void packTiles(const int8_t* vectors, uint32_t dim, uint32_t tokens, uint32_t steps, uint32_t tileTokens,
                      uint32_t used, int32_t* packed) {
  constexpr uint32_t group = 4 / sizeof(Element);
  static constexpr int8_t missing[dimMax] = {};
  alignas(64) Element rows[4][dimMax];
  alignas(64) int32_t words[dimMax / group][4];
  // Missing dimensions and missing tokens are 0, so that whatever is read behind a row is multiplied by 0.
  for (auto& row : rows) std::fill(row + dim, row + steps * group, Element(0));
  for (uint32_t tile = 0; tile < used; tile += tileTokens) {
    const uint32_t width = used - tile < tileTokens ? used - tile : tileTokens;
    for (uint32_t first = 0; first < width; first += 4) {
      int32_t* to = packed + first;
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t token = tile + first + i;
        const int8_t* vector = token < tokens ? vectors + size_t(token) * dim : missing;
        int32_t sum = 0;
        for (uint32_t d = 0; d < dim; ++d) {
          rows[i][d] = vector[d];
          sum += vector[d];
        }
        if (bias != 0) to[i] = -bias * sum;
      }
      if (bias != 0) to += width;
      for (uint32_t step = 0; step < steps; ++step) {
        for (uint32_t i = 0; i < 4; ++i) std::memcpy(&words[step][i], rows[i] + step * group, 4);
      }
      for (uint32_t step = 0; step < steps; ++step, to += width) std::memcpy(to, words[step], sizeof words[step]);
    }
    packed += size_t(steps + (bias != 0 ? 1 : 0)) * width;
  }
}

template <typename Ops, typename Narrow = Ops>
struct LaneKernel {
  using Element = typename Ops::Element;

  static constexpr uint32_t group = Ops::group;
  static constexpr uint32_t lanes = Ops::lanes;
  static constexpr uint32_t tileTokens = 2 * lanes;
  static constexpr uint32_t blockRows = Ops::rows;
  static constexpr uint32_t together = Ops::together;
  static_assert(together == 1 || std::is_same_v<Ops, Narrow>);

  static uint32_t stepsOf(uint32_t dim) { return (dim + group * together - 1) / (group * together) * together; }

  /// 32-bit words of one token, with its bias.
  static size_t wordsOf(uint32_t dim) { return stepsOf(dim) + (Ops::bias != 0 ? 1 : 0); }

  /// Tokens that are multiplied: whole registers, at most `tokensPadded`.
  static uint32_t tokensUsed(uint32_t tokens) { return (tokens + Narrow::lanes - 1) / Narrow::lanes * Narrow::lanes; }

  /// Sets values[from], ..., values[to - 1] to `value`, in whole registers.
  TARGET_INLINE void fillTokens(float* values, uint32_t from, uint32_t to, float value) {
    for (uint32_t i = from; i < to; i += Narrow::lanes) Narrow::store(values + i, Narrow::fill(value));
  }

  static size_t packedBytes(RowShape shape, uint32_t tokens) { return wordsOf(shape.dim) * 4 * paddedTokens(tokens); }

  /// Bytes of so many components as they are stored; of a whole row `RowShape::bytes` for its dim.
  static constexpr size_t stored(size_t components) { return components * Ops::bits / 8; }
  static size_t rowBytes(uint32_t dim) { return RowShape(dim, Ops::bits).bytes(); }

  static void pack(const int8_t* vectors, RowShape shape, uint32_t tokens, void* packed) {
    const uint32_t dim = shape.dim;
    const uint32_t used = tokensUsed(tokens);
    packTiles<PackedElement, Ops::bias>(vectors, dim, tokens, stepsOf(dim), tileTokens, used,
                                        static_cast<int32_t*>(packed));
    // The rest is never multiplied.
    const size_t words = wordsOf(dim) * used;
    std::memset(static_cast<int32_t*>(packed) + words, 0, packedBytes(shape, tokens) - words * 4);
  }

  /// A converted block. The stride is a cache line longer than the longest row, because rows a power of two apart would
  /// compete for the same cache sets.
  struct Rows {
    static constexpr uint32_t stride = dimMax + 64 / sizeof(Element);
    alignas(64) Element vector[blockRows * stride];
    alignas(32) float scale[8];
  };

  /// The source of the next block: `blockRows` consecutive rows, their scales, and memory to prefetch in the meantime.
  struct Source {
    const int8_t* row;
    const uint16_t* scales;
    const char* ahead;
  };

  /// Converts the dimensions strip, ..., strip + Ops::strip - 1 of every row.
  TARGET_INLINE void convertStrip(Rows& rows, const Source& source, uint32_t dim, uint32_t strip) {
    const int8_t* row = source.row + stored(strip);
    // Prefetches line after line, whatever the rows are, so that the processor recognises a stream.
    const char* ahead = source.ahead + stored(strip) * blockRows;
    Element* out = rows.vector + strip;
#pragma GCC unroll 8
    for (uint32_t r = 0; r < blockRows; ++r) {
      Ops::convert(row, out);
      if (r % (8 / Ops::bits) == 0) __builtin_prefetch(ahead);
      row += rowBytes(dim);
      ahead += stored(Ops::strip);
      out += Rows::stride;
    }
  }

  TARGET_INLINE void convertBlock(Rows& rows, const Source& source, uint32_t dim) {
    for (uint32_t strip = 0; strip < dim; strip += Ops::strip) convertStrip(rows, source, dim, strip);
    Ops::widen(source.scales, rows.scale);
  }

  /// Converts a chunk that is shorter than a block; its last row is repeated.
  TARGET_INLINE void convertShort(Rows& rows, const Chunk& chunk, uint32_t dim) {
    uint16_t scales[8] = {};
    for (uint32_t r = 0; r < blockRows; ++r) {
      const uint32_t row = r < chunk.rows ? r : chunk.rows - 1;
      const int8_t* from = chunk.vectors + row * rowBytes(dim);
      Element* out = rows.vector + r * Rows::stride;
      for (uint32_t strip = 0; strip < dim; strip += Ops::strip) Ops::convert(from + stored(strip), out + strip);
      scales[r] = chunk.scales[row];
    }
    Ops::widen(scales, rows.scale);
  }

  enum class Out { maximum, arguments, all };

  struct Target {
    float* best;
    uint32_t* row;
    float* all;
    uint32_t stride;
    uint32_t rowFirst;
    uint32_t rowLast;
    /// The next block, converted while the first tile is multiplied; null = none.
    const Source* source;
    Rows* converted;
  };

  /// Scales the dot products of one row with one register of tokens, and stores or compares them.
  template <Out out, typename Tokens>
  TARGET_INLINE void emit(typename Tokens::Ints dots, const Rows& rows, uint32_t r, const Target& target,
                          uint32_t token, typename Tokens::Floats& best, typename Tokens::Ints& argument) {
    const auto similarity = Tokens::scaled(dots, rows.scale[r]);
    const uint32_t row = target.rowFirst + r < target.rowLast ? target.rowFirst + r : target.rowLast;
    if constexpr (out == Out::maximum) best = Tokens::maximum(best, similarity);
    if constexpr (out == Out::arguments) Tokens::keep(best, argument, similarity, row);
    if constexpr (out == Out::all) Tokens::store(target.all + size_t(row) * target.stride + token, similarity);
  }

  using Ints = typename Ops::Ints;
  TARGET_INLINE void accumulateBoth(Ints& a, Ints& b, Ints queryA, Ints queryB, Ints document) {
    if constexpr (requires { Ops::accumulateBoth(a, b, queryA, queryB, document); }) {
      Ops::accumulateBoth(a, b, queryA, queryB, document);
    } else {
      Ops::accumulate(a, queryA, document);
      Ops::accumulate(b, queryB, document);
    }
  }

// Accumulators have names, because g++ 12 keeps an array of them on the stack. `a` and `b` are the registers of a tile.
// B is void if the tile has one register.
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

#define ADD_PAIRS(r)                                           \
  if constexpr (together > 1 && r >= rowStart && r < rowEnd) { \
    A::addPairs(a##r, productsA##r);                           \
    if constexpr (two) A::addPairs(b##r, productsB##r);        \
  }
#define EMIT(r)                                                                                      \
  if constexpr (r >= rowStart && r < rowEnd) {                                                       \
    emit<out, A>(a##r, rows, r, target, token, bestA, argumentA);                                    \
    if constexpr (two) emit<out, Second>(b##r, rows, r, target, token + A::lanes, bestB, argumentB); \
  }

  /// Multiplies rows rowStart, ..., rowEnd - 1 of a block with the tokens of one tile.
  template <Out out, uint32_t rowStart, uint32_t rowEnd, typename A, typename B>
  TARGET_INLINE void tile(const int32_t* query, uint32_t dim, const Rows& rows, const Target& target, uint32_t token,
                          bool converts) {
    constexpr bool two = !std::is_void_v<B>;
    using Second = std::conditional_t<two, B, A>;
    constexpr uint32_t width = two ? A::lanes + Second::lanes : A::lanes;
    const auto startA = Ops::bias != 0 ? A::load(query) : A::zero();
    const auto startB = Ops::bias != 0 && two ? Second::load(query + A::lanes) : Second::zero();
    if (Ops::bias != 0) query += width;
#define DECLARE(r)                                 \
  [[maybe_unused]] typename A::Ints a##r = startA; \
  [[maybe_unused]] typename Second::Ints b##r = startB;
    EACH_ROW(DECLARE)
#undef DECLARE
    const Element* documents = rows.vector;
    for (uint32_t strip = 0; strip < dim; strip += Ops::strip) {
      if (converts) convertStrip(*target.converted, *target.source, dim, strip);
      const Element* end = documents + (dim - strip < Ops::strip ? dim - strip : Ops::strip);
      do {
#define DECLARE(r) [[maybe_unused]] typename A::Ints productsA##r, productsB##r;
        EACH_ROW(DECLARE)
#undef DECLARE
#pragma GCC unroll 4
        for (uint32_t step = 0; step < together; ++step) {
          const auto queryA = A::load(query);
          [[maybe_unused]] typename Second::Ints queryB;
          if constexpr (two) queryB = Second::load(query + A::lanes);
          query += width;
#define STEP(r)                                                                      \
  if constexpr (r >= rowStart && r < rowEnd) {                                       \
    const auto document = A::broadcast(documents + r * Rows::stride);                \
    if constexpr (together > 1) {                                                    \
      if (step == 0) {                                                               \
        A::multiply(productsA##r, queryA, document);                                 \
        if constexpr (two) A::multiply(productsB##r, queryB, document);              \
      } else if constexpr (two) {                                                    \
        accumulateBoth(productsA##r, productsB##r, queryA, queryB, document);        \
      } else {                                                                       \
        A::accumulate(productsA##r, queryA, document);                               \
      }                                                                              \
    } else if constexpr (std::is_same_v<A, B>) {                                     \
      accumulateBoth(a##r, b##r, queryA, queryB, document);                          \
    } else {                                                                         \
      A::accumulate(a##r, queryA, document);                                         \
      if constexpr (two) Second::accumulate(b##r, queryB, Second::narrow(document)); \
    }                                                                                \
  }
          EACH_ROW(STEP)
#undef STEP
          documents += group;
        }
        EACH_ROW(ADD_PAIRS)
      } while (documents < end);
    }
    typename A::Floats bestA{};
    typename Second::Floats bestB{};
    typename A::Ints argumentA{};
    typename Second::Ints argumentB{};
    if constexpr (out != Out::all) {
      bestA = A::loadFloats(target.best + token);
      if constexpr (two) bestB = Second::loadFloats(target.best + token + A::lanes);
    }
    if constexpr (out == Out::arguments) {
      argumentA = A::load(target.row + token);
      if constexpr (two) argumentB = Second::load(target.row + token + A::lanes);
    }
    EACH_ROW(EMIT)
    if constexpr (out != Out::all) {
      A::store(target.best + token, bestA);
      if constexpr (two) Second::store(target.best + token + A::lanes, bestB);
    }
    if constexpr (out == Out::arguments) {
      A::store(target.row + token, argumentA);
      if constexpr (two) Second::store(target.row + token + A::lanes, argumentB);
    }
  }
#undef EMIT
#undef ADD_PAIRS
#undef EACH_ROW

  /// Multiplies rows rowStart, ... of a block with all tokens.
  template <Out out, uint32_t rowStart,
            uint32_t rowEnd = rowStart + Ops::tileRows < blockRows ? rowStart + Ops::tileRows : blockRows>
  TARGET_INLINE void tiles(const PackedQuery& query, uint32_t dim, const Rows& rows, const Target& target,
                           bool converts) {
    const auto* packed = static_cast<const int32_t*>(query.packed);
    const uint32_t used = tokensUsed(query.tokens);
    uint32_t token = 0;
    for (; token + tileTokens <= used; token += tileTokens) {
      tile<out, rowStart, rowEnd, Ops, Ops>(packed + token * wordsOf(dim), dim, rows, target, token,
                                            converts && token == 0);
    }
    packed += token * wordsOf(dim);
    const uint32_t left = used - token;
    converts = converts && token == 0;
    if (left == lanes) tile<out, rowStart, rowEnd, Ops, void>(packed, dim, rows, target, token, converts);
    if constexpr (!std::is_same_v<Ops, Narrow>) {
      if (left == lanes + Narrow::lanes)
        tile<out, rowStart, rowEnd, Ops, Narrow>(packed, dim, rows, target, token, converts);
      if (left == Narrow::lanes) tile<out, rowStart, rowEnd, Narrow, void>(packed, dim, rows, target, token, converts);
    }
    if constexpr (rowEnd < blockRows) tiles<out, rowEnd>(query, dim, rows, target, false);
  }

  /// The first row of the block for rows first, first + 1, ...: the last block of a chunk moves back to be full.
  static uint32_t startOf(uint32_t first, uint32_t rows) {
    return first + blockRows <= rows || rows < blockRows ? first : rows - blockRows;
  }

  /// Multiplies rows first, first + 1, ... of a chunk, converted as the block at startOf(first).
  template <Out out>
  TARGET_INLINE void block(const PackedQuery& query, uint32_t dim, const Rows& rows, uint32_t first, Target& target) {
    const uint32_t count = target.rowLast + 1;
    target.rowFirst = startOf(first, count);
    if (first - target.rowFirst < blockRows / 2) {
      tiles<out, 0>(query, dim, rows, target, target.source != nullptr);
    } else {
      tiles<out, blockRows / 2>(query, dim, rows, target, target.source != nullptr);
    }
  }

  TARGET_INLINE void prefetch(const void* from, size_t bytes) {
    for (size_t b = 0; b < bytes; b += 64) __builtin_prefetch(static_cast<const char*>(from) + b, 0, 3);
  }

  /// Calls `work(dim)`, inlined, with a constant for the usual dimensions. g++ compiles those loops better (8% of exact
  /// scores on Zen 4, 44% of products with more than 16 tokens).
  /// The native tests leave these loops out of emulated kernels, which then compile in a third of the time.
  template <typename Work>
  TARGET_INLINE void withDim(uint32_t dim, const Work& work) {
#if !defined(EMULATED)
    switch (dim) {
      case 96: return work(96);
      case 128: return work(128);
      case 384: return work(384);
    }
#endif
    work(dim);
  }

  /// The loop of maxsim.
  TARGET_INLINE void scoreChunks(const PackedQuery& query, uint32_t dim, const Chunk* chunks, size_t count,
                                 float* scores) {
    alignas(64) float best[queryTokensMax];
    const uint32_t used = tokensUsed(query.tokens);
    fillTokens(best, used, query.tokensPadded, 0.0f);
    Rows rows[2];
    uint32_t current = 0;
    RowsAhead ahead(chunks, count, rowBytes(dim), blockRows, Ops::prefetchBytes);
    if (chunks[0].rows < blockRows) {
      convertShort(rows[0], chunks[0], dim);
    } else {
      convertBlock(rows[0], {chunks[0].vectors, chunks[0].scales, reinterpret_cast<const char*>(chunks[0].vectors)},
                   dim);
    }
    for (size_t c = 0; c < count; ++c) {
      const Chunk& chunk = chunks[c];
      const Chunk& next = chunks[c + 1 < count ? c + 1 : c];
      fillTokens(best, 0, used, -__builtin_inff());
      Target target{best, nullptr, nullptr, 0, 0, chunk.rows - 1, nullptr, nullptr};
      for (uint32_t first = 0; first < chunk.rows; first += blockRows, ahead.advance()) {
        const bool more = first + blockRows < chunk.rows;
        const Chunk& from = more ? chunk : next;
        Rows& converted = rows[current ^ 1];
        const uint32_t start = more ? startOf(first + blockRows, chunk.rows) : 0;
        const Source source{from.vectors + start * rowBytes(dim), from.scales + start,
                            reinterpret_cast<const char*>(ahead.rows())};
        target.converted = &converted;
        if (from.rows < blockRows) {
          target.source = nullptr;
          convertShort(converted, from, dim);
          prefetch(source.ahead, std::min(ahead.count(), blockRows) * rowBytes(dim));
        } else {
          target.source = &source;
          Ops::widen(source.scales, converted.scale);
        }
        block<Out::maximum>(query, dim, rows[current], first, target);
        current ^= 1;
      }
      scores[c] = finishScore(query, best);
    }
  }

  TARGET static void maxsim(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
    calls.fetch_add(1, std::memory_order_relaxed);
    withDim(query.dim, [&](uint32_t dim) TARGET_LAMBDA { scoreChunks(query, dim, chunks, count, scores); });
  }

  /// Multiplies all blocks of one chunk.
  template <Out out>
  TARGET_INLINE void eachBlock(const PackedQuery& query, uint32_t dim, const Chunk& chunk, Target& target) {
    Rows rows;
    for (uint32_t first = 0; first < chunk.rows; first += blockRows) {
      const uint32_t start = startOf(first, chunk.rows);
      const int8_t* row = chunk.vectors + start * rowBytes(dim);
      if (chunk.rows < blockRows) {
        convertShort(rows, chunk, dim);
      } else {
        convertBlock(rows, {row, chunk.scales + start, reinterpret_cast<const char*>(row) + Ops::prefetchBytes}, dim);
      }
      block<out>(query, dim, rows, first, target);
    }
  }

  TARGET static void best(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rowsOut) {
    calls.fetch_add(1, std::memory_order_relaxed);
    alignas(64) float best[queryTokensMax];
    alignas(64) uint32_t row[queryTokensMax];
    for (uint32_t i = 0; i < query.tokensPadded; ++i) {
      best[i] = i < query.tokens ? -__builtin_inff() : 0.0f;
      row[i] = 0;
    }
    Target target{best, row, nullptr, 0, 0, chunk.rows - 1, nullptr, nullptr};
    eachBlock<Out::arguments>(query, query.dim, chunk, target);
    std::memcpy(similarities, best, query.tokensPadded * sizeof(float));
    std::memcpy(rowsOut, row, query.tokensPadded * sizeof(uint32_t));
  }

  TARGET static void similarities(const PackedQuery& query, const Chunk& chunk, float* out) {
    calls.fetch_add(1, std::memory_order_relaxed);
    Target target{nullptr, nullptr, out, query.tokensPadded, 0, chunk.rows - 1, nullptr, nullptr};
    withDim(query.dim, [&](uint32_t dim) TARGET_LAMBDA { eachBlock<Out::all>(query, dim, chunk, target); });
    for (uint32_t row = 0; row < chunk.rows; ++row) {
      fillTokens(out + size_t(row) * query.tokensPadded, tokensUsed(query.tokens), query.tokensPadded, 0.0f);
    }
  }

 private:
  /// The query's elements: signed, as wide as the document's.
  using PackedElement = std::make_signed_t<Element>;
};

/// The functions of one kernel: those of `Of<bits>` by the bits of the rows.
template <template <uint32_t bits> typename Of>
struct ByRowBits {
  template <typename Work>
  static auto with(uint32_t bits, const Work& work) {
    switch (bits) {
      case 1: return work(Of<1>());
      case 2: return work(Of<2>());
      case 4: return work(Of<4>());
      default: return work(Of<8>());
    }
  }

  static size_t packedBytes(RowShape shape, uint32_t tokens) {
    return with(shape.bits, [&](auto of) { return of.packedBytes(shape, tokens); });
  }
  static void pack(const int8_t* vectors, RowShape shape, uint32_t tokens, void* packed) {
    with(shape.bits, [&](auto of) { of.pack(vectors, shape, tokens, packed); });
  }
  static void maxsim(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
    // Kernels read ahead, from the first chunk on.
    if (count == 0) return;
    with(query.rowBits, [&](auto of) { of.maxsim(query, chunks, count, scores); });
  }
  static void best(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rows) {
    with(query.rowBits, [&](auto of) { of.best(query, chunk, similarities, rows); });
  }
  static void similarities(const PackedQuery& query, const Chunk& chunk, float* out) {
    with(query.rowBits, [&](auto of) { of.similarities(query, chunk, out); });
  }

  static constexpr Kernel kernel(const char* name, bool (*required)(const CpuFeatures&),
                                 int32_t (*dot)(const int8_t*, const int8_t*, uint32_t), const CodeLoops* loops) {
    return {name, required, packedBytes, pack, maxsim, best, similarities, dot, &calls, loops};
  }
};

}  // namespace
}  // namespace maxsimd
