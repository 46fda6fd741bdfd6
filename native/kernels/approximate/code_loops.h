// The inner loops over centroid codes and residual codes, which choose the few chunks that are scored exactly. They are
// compiled once for AVX2 and once for the instructions that every processor of an architecture has.
//
// A token vector is described by its centroid and, for each subspace of a few components, by one of 16 codewords for
// what the centroid leaves over (product quantisation: Jégou, Douze and Schmid, TPAMI 33, 2011). Four bits a subspace
// keep the tables of 32 query tokens in the first-level cache (André, Kermarrec and Le Scouarnec, VLDB 9, 2015). The
// loops use integers and comparisons, or float operations in a stated order, so both sets give the same results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t queryTokensMax = 512;

inline constexpr uint32_t codewords = 16;
/// Query tokens that a register of AVX2 holds.
inline constexpr uint32_t tableLanes = 32;
/// How many tokens the tables of a query have.
constexpr uint32_t tableTokens(uint32_t tokens) { return (tokens + tableLanes - 1) / tableLanes * tableLanes; }
/// Subspaces of a vector of any dimension. A byte holds the codewords of two of them, the even one's in its low half.
inline constexpr uint32_t subspaces = 32;
inline constexpr uint32_t residualBytes = subspaces / 2;
/// Components of a subspace. Those of the last ones may lie beyond `dim`.
constexpr uint32_t subspaceDimOf(uint32_t dim) { return (dim + subspaces - 1) / subspaces; }

/// A query's lookup tables. `tokensPadded` is `tableTokens` of its tokens. Pointers are 64-byte aligned.
struct ResidualTable {
  uint32_t tokensPadded;
  /// u8 [codeMask + 1][tokensPadded]; 0 for padding tokens
  const uint8_t* entries;
  /// 2^n - 1. Codes from a file are masked with it, so that no row outside the table is read, whatever the file holds.
  uint32_t codeMask;
  /// An entry is worth entryFactor / 256 steps of `residuals`, at most 255 for the largest entry.
  uint16_t entryFactor;
  /// u8 [tokensPadded / tableLanes][subspaces][16][tableLanes]. A sum over all subspaces plus the largest entry is at most
  /// 255.
  const uint8_t* residuals;
  /// u8 [tokensPadded]: how far below the chunk's highest entry a token vector may be and still be its best.
  const uint8_t* margins;
};

/// A code as it stands in a file: the centroid, and above `centroidBits` how many token vectors of the chunk have it.
inline constexpr uint32_t centroidBits = 24;
inline constexpr uint32_t runMost = 255;

struct CodedChunk {
  std::span<const uint32_t> codes;
  /// u8 [rows][residualBytes]: the codewords of its token vectors, by code.
  const uint8_t* residuals;
  /// If the codes' token vectors are more, the rest is ignored.
  uint32_t rows;
};

/// The entry of one query token at one centroid.
struct TableHit {
  uint32_t code;
  uint16_t token;
  uint8_t entry;
};

struct CodeLoops {
  const char* name;

  /// entries[k][i] = (similarities[k][i] - floors[i]) * factors[i], rounded, within 0..255, for i < tokens: f32 rows
  /// `stride` apart to u8 rows `entriesStride` apart.
  void (*quantizeEntries)(const float* similarities, uint32_t rows, uint32_t stride, uint32_t tokens,
                          const float* floors, const float* factors, uint8_t* entries, uint32_t entriesStride);

  /// The sum over query tokens i of the largest entries[code][i]; at most 512 * 255.
  uint32_t (*sumOfMaxima)(const ResidualTable& table, std::span<const uint32_t> codes);

  /// Sum over query tokens i of the maximum over token vectors j of
  ///   (entries[code(j)][i] * entryFactor >> 8) + sum over subspaces m of residuals[m][codeword(j, m)][i]
  /// For each register of tokens only those j count that may be the best for one of them: for some i
  ///   entries[code(j)][i] >= max(1, highest[i] - margins[i])
  /// where highest[i] is the largest entry of the chunk's codes.
  uint32_t (*sumOfResidualMaxima)(const ResidualTable& table, const CodedChunk& chunk);

  /// Appends every entries[code][i] >= least[i] > 0 of u8 [rows x tokensPadded], code by code. `least` is 64-byte aligned.
  void (*collectHits)(const uint8_t* entries, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                      std::vector<TableHit>& hits);
};

#if defined(__x86_64__)
extern const CodeLoops avx2CodeLoops;
#endif
/// For the instructions that every processor of the architecture has: SSE2, NEON.
extern const CodeLoops baselineCodeLoops;

}  // namespace maxsimd
