// Approximate MaxSim over centroid codes and residual bytes, the inner loops: what stands between a sum of maxima
// over codes alone (code_levels.h) and the exact kernels.
//
// A token vector is its centroid and, for each subspace of `subspaceDim` components, one of 256 codewords for what
// the centroid leaves over (product quantisation: Jégou, Douze and Schmid, TPAMI 33, 2011). Compiled for several
// instruction sets and chosen by the loader, where it can do that: integers and comparisons only, or sums in a stated
// order, so that all give the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t subspaceDim = 16;
inline constexpr uint32_t codewords = 256;
/// A query's tables; `tokensPadded` is a multiple of 32.
struct RefinedTable {
  uint32_t tokensPadded;
  uint32_t subspaces;
  /// u8 [codeMask + 1][tokensPadded], 64-byte aligned
  const uint8_t* levels;
  /// Of codes as they are read from a file: whatever stands there, no row outside is read. 2^n - 1.
  uint16_t codeMask;
  /// A level counts levelFactor / 256 steps of `residuals`, at most 255 for the largest level.
  uint16_t levelFactor;
  /// u8 [subspaces x 256 x tokensPadded], 64-byte aligned; a sum over subspaces and the largest level is at most 255.
  const uint8_t* residuals;
};

/// levels[k][i] = (similarities[k][i] - floors[i]) * factors[i], rounded, within 0..255: f32 [rows x stride] to
/// u8 [rows x tokensPadded], stride <= tokensPadded.
void quantizeLevels(const float* similarities, uint32_t rows, uint32_t stride, const float* floors,
                    const float* factors, uint8_t* levels, uint32_t tokensPadded);

/// Sum over query tokens i of the maximum over a chunk's token vectors j of
///   (levels[code(j)][i] * levelFactor >> 8) + sum over subspaces m of residuals[m][byte(j, m)][i]
/// Token vectors lie in the order of their codes: codes[k] has runs[k] of them, all together `rows`, and no more are
/// read if the runs say so; `bytes` is u8 [rows x subspaces].
uint32_t sumOfRefinedMaxima(const RefinedTable& table, const uint16_t* codes, const uint8_t* runs, uint32_t codeCount,
                            const uint8_t* bytes, uint32_t rows);

/// highest[i] = the largest levels[k][i]: u8 [rows x tokensPadded] to u8 [tokensPadded].
void highestLevels(const uint8_t* levels, uint32_t rows, uint32_t tokensPadded, uint8_t* highest);

/// A token's level at one centroid.
struct LevelEntry {
  uint16_t code;
  uint16_t token;
  uint8_t level;
};
/// Appends, code by code, every levels[code][i] >= least[i] > 0 of u8 [rows x tokensPadded].
void collectLevels(const uint8_t* levels, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                   std::vector<LevelEntry>& entries);

/// dots[w][i] = sum over d of codewords[w][d] * columns[d][i], in order; least[i] and most[i] over all w.
/// `codewords` is f32 [256][subspaceDim], `columns` f32 [subspaceDim][stride], stride a multiple of 16.
void codewordSimilarities(const float* codewords, const float* columns, uint32_t stride, float* dots, float* least,
                          float* most);

/// The codeword with the largest dot(vector, codeword) - halfSquare: the nearest one. `columns` is f32
/// [subspaceDim x 256], `halfSquares` f32 [256]: half of each codeword's squared length.
uint8_t nearestCodeword(const float* vector, const float* columns, const float* halfSquares);

}  // namespace maxsimd
