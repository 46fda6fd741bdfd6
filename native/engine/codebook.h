// Centroids of token vectors, in groups, and codewords for what the centroids leave over: what a segment's chunks are
// described by (codes.h).
//
// A query scores all centroids once (`table`); the approximate MaxSim of a chunk is then a maximum over its few
// codes (PLAID, arXiv 2205.09707), and a finer one a maximum over centroid plus codewords of each token vector.
// Token vectors find their centroid in two steps: the nearest groups, then the nearest centroid among those. A
// codebook is fitted on an index's own token vectors (codebook_fit.h); one fitted on general text finds far fewer
// of the best chunks.
#pragma once

#include "engine/pool.h"
#include "engine/query.h"
#include "kernels/contract.h"
#include "kernels/refined_levels.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t centroidsMax = 65536;

/// Unit vectors as int8 with a scale each. Group g has the centroids [groupStarts[g], groupStarts[g + 1]).
struct CodebookData {
  uint32_t dim = 0;
  /// i8 [centroids x dim] and f16 [centroids], each followed by `readPaddingBytes`.
  std::vector<int8_t> centroids;
  std::vector<uint16_t> scales;
  /// The middle of each group, likewise.
  std::vector<int8_t> groups;
  std::vector<uint16_t> groupScales;
  std::vector<uint32_t> groupStarts;
  /// A token vector is about `share` times its centroid: mean of their dot products.
  float share = 1.0f;
  /// Of what is left over: f32 [subspaces][256][subspaceDim], zeros where a subspace goes beyond dim.
  std::vector<float> codewords;

  uint32_t subspaces() const { return (dim + subspaceDim - 1) / subspaceDim; }
  uint32_t count() const { return groupStarts.back(); }
  uint32_t groupCount() const { return uint32_t(groupStarts.size()) - 1; }
};

class Codebook {
 public:
  /// Sizes must agree, scales be positive and finite and groups cover all centroids in order: else `corrupt`.
  Codebook(const Kernel& kernel, CodebookData data);

  const CodebookData& data() const { return data_; }
  /// Of the content.
  uint64_t hash() const { return hash_; }
  uint32_t count() const { return data_.count(); }

  /// codes[r] = the centroid with the largest dot product with row r, among those of the nearest groups.
  /// `vectors` is i8 [rows x dim] and followed by `readPaddingBytes`.
  void assign(const int8_t* vectors, uint32_t rows, uint16_t* codes) const;

  /// The nearest codewords of what the centroids leave over: u8 [rows x subspaces]. `scales` is f16 [rows].
  void encode(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint16_t* codes,
              uint8_t* bytes) const;

  /// One byte per centroid and query token, [count x tokensPadded]: the similarity above a floor of that token,
  /// in steps common to all tokens. Sums of maxima rank chunks like the approximate MaxSim.
  struct Table {
    uint32_t tokens;
    /// Padded to whole 32-byte steps, whose missing tokens stay at level 0.
    uint32_t tokensPadded;
    AlignedVector<uint8_t> levels;
    /// approximate score = base + step * sum of maxima
    float base;
    float step;
    /// As RefinedTable has them.
    AlignedVector<uint8_t> residuals;
    uint16_t levelFactor;
    /// finer score = refinedBase + refinedStep * sum of refined maxima
    float refinedBase;
    float refinedStep;

    RefinedTable refined(uint32_t subspaces) const {
      return {tokensPadded, subspaces, levels.data(), levelFactor, residuals.data()};
    }
  };
  /// `vectors` is the query as f32 [tokens x dim].
  Table table(const PackedQuery& query, std::span<const float> vectors, Pool& pool) const;

 private:
  const Kernel& kernel_;
  CodebookData data_;
  uint64_t hash_;
  /// The codewords as columns, f32 [subspaces][subspaceDim][256], and half their squared lengths.
  std::vector<float> columns_;
  std::vector<float> halfSquares_;

  void refine(Table& table, std::span<const float> vectors, const std::vector<float>& ranges, float floors,
              float offsets) const;
};

}  // namespace maxsimd
