// Centroids of token vectors, in groups: what a segment's chunks are described by (codes.h).
//
// A query scores all centroids once (`table`); the approximate MaxSim of a chunk is then a maximum over its few
// codes (PLAID, arXiv 2205.09707). Token vectors find their centroid in two steps: the nearest groups, then the
// nearest centroid among those. A codebook is fitted on an index's own token vectors (codebook_fit.h); one
// fitted on general text finds far fewer of the best chunks.
#pragma once

#include "engine/pool.h"
#include "engine/query.h"
#include "kernels/contract.h"

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
  };
  Table table(const PackedQuery& query, Pool& pool) const;

 private:
  const Kernel& kernel_;
  CodebookData data_;
  uint64_t hash_;
};

}  // namespace maxsimd
