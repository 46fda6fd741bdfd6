// The inner loops over centroid codes and residual codes, which choose the few chunks that are scored exactly. Each
// kernel has its own set, so that a forced kernel runs its own instructions here too.
//
// A token vector is described by its centroid and, for each subspace of a few components, by one of 16 codewords for
// what the centroid leaves over (product quantisation: Jégou, Douze and Schmid, TPAMI 33, 2011). Four bits a subspace
// keep the tables of 32 query tokens in the first-level cache (André, Kermarrec and Le Scouarnec, VLDB 9, 2015). The
// loops use integers and comparisons, or float sums in a stated order, so all sets give the same results.
#pragma once

#include "kernels/approximate/code_span.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t queryTokensMax = 512;

inline constexpr uint32_t codewords = 16;
/// Tables have this width for queries of at most this many tokens. Most queries are that short, and half of a wider
/// table would be padding.
inline constexpr uint32_t fewTokens = 16;
/// For longer queries the width is a multiple of this.
inline constexpr uint32_t manyTokens = 32;
constexpr uint32_t tableTokens(uint32_t tokens) {
  return tokens <= fewTokens ? fewTokens : (tokens + manyTokens - 1) / manyTokens * manyTokens;
}
/// Components of a subspace: 4, and more beyond 128 dimensions, so that the residual code of a token vector has at most
/// 16 bytes.
constexpr uint32_t subspaceDimOf(uint32_t dim) { return dim <= 128 ? 4 : (dim + 31) / 32; }
/// The number of subspaces. It is even, because a byte holds two codewords.
constexpr uint32_t subspacesOf(uint32_t dim) {
  const uint32_t width = subspaceDimOf(dim);
  return (dim + 2 * width - 1) / (2 * width) * 2;
}
static_assert(subspacesOf(128) == 32 && subspacesOf(1) == 2 && subspacesOf(384) == 32 && subspacesOf(1024) == 32);

/// A query's lookup tables. `tokensPadded` is `tableTokens` of its tokens.
struct ResidualTable {
  uint32_t tokensPadded;
  uint32_t subspaces;
  /// u8 [codeMask + 1][tokensPadded], 64-byte aligned; 0 for padding tokens
  const uint8_t* entries;
  /// 2^n - 1. Codes from a file are masked with it, so that no row outside the table is read, whatever the file holds.
  uint32_t codeMask;
  /// An entry is worth entryFactor / 256 steps of `residuals`, at most 255 for the largest entry.
  uint16_t entryFactor;
  /// u8 [groups][subspaces][16][tokens of a group], 64-byte aligned. A group has `CodeLoops::tokensTogether` tokens. A
  /// sum over all subspaces plus the largest entry is at most 255.
  const uint8_t* residuals;
  /// u8 [tokensPadded]: how far below the chunk's highest entry a token vector may be and still be its best.
  const uint8_t* margins;
};

/// The codes of a chunk. Its token vectors are ordered by code: code k has runs[k] of them. If the runs add up to more
/// than `rows`, the rest is ignored.
struct CodedChunk {
  CodeSpan codes;
  const uint8_t* runs;
  /// The residual codes of its token vectors. `chooseRows` prefetches those that it chooses.
  const uint8_t* residuals;
  uint32_t rows;
};

/// A token vector of a chunk: its code, and its place among the chunk's.
struct ChosenRow {
  uint32_t code;
  uint32_t place;
};

/// The entry of one query token at one centroid.
struct TableHit {
  uint32_t code;
  uint16_t token;
  uint8_t entry;
};

struct CodeLoops {
  const char* name;
  /// The most query tokens that fit a register; a multiple of `manyTokens`.
  uint32_t registerTokens;

  /// How many query tokens stand together in the residual tables of a query of this width.
  uint32_t tokensTogether(uint32_t tokensPadded) const {
    return tokensPadded <= registerTokens ? tokensPadded : manyTokens;
  }

  /// entries[k][i] = (similarities[k][i] - floors[i]) * factors[i], rounded, within 0..255, for i < tokens: f32 rows
  /// `stride` apart to u8 rows `entriesStride` apart. `tokens` is a multiple of 16.
  void (*quantizeEntries)(const float* similarities, uint32_t rows, uint32_t stride, uint32_t tokens,
                          const float* floors, const float* factors, uint8_t* entries, uint32_t entriesStride);

  /// The sum over query tokens i of the largest entries[codes.at(k, codeMask)][i]; at most 512 * 255. These go to highest[i],
  /// u8 [tokensPadded], unless it is null.
  uint32_t (*highestOfCodes)(const ResidualTable& table, const CodeSpan& codes, uint8_t* highest);

  /// Chooses, in order, the token vectors that may be the best of their chunk for a query token: for some i
  ///   entries[code][i] >= max(1, highest[i] - margins[i])
  /// `highest` comes from `highestOfCodes` of the chunk's codes. Returns how many are chosen.
  uint32_t (*chooseRows)(const ResidualTable& table, const CodedChunk& chunk, const uint8_t* highest,
                         ChosenRow* chosen);

  /// Sum over query tokens i of the maximum over these token vectors j of
  ///   (entries[code(j)][i] * entryFactor >> 8) + sum over subspaces m of residuals[m][codeword(j, m)][i]
  /// `bytes` is u8 [rows of the chunk][subspaces / 2], the codeword of the even subspace in the low half.
  uint32_t (*sumOfResidualMaxima)(const ResidualTable& table, const uint8_t* bytes, const ChosenRow* rows,
                                  uint32_t count);

  /// Appends every entries[code][i] >= least[i] > 0 of u8 [rows x tokensPadded], code by code.
  void (*collectHits)(const uint8_t* entries, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                      std::vector<TableHit>& hits);
};

#if defined(__x86_64__)
extern const CodeLoops avx512CodeLoops;
extern const CodeLoops avx2CodeLoops;
#endif
/// For the instructions that every processor of the architecture has: SSE2, NEON.
extern const CodeLoops baselineCodeLoops;

}  // namespace maxsimd
