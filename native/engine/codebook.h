// Centroids of token vectors, and what is known of a chunk through them: the set of centroids nearest to its
// token vectors. A query scores all centroids once; the approximate MaxSim of a chunk is then a maximum over
// its few codes (PLAID, arXiv 2205.09707).
#pragma once

#include "engine/query.h"
#include "kernels/contract.h"
#include "store/record.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t codebookCountMax = 65536;

class Codebook {
 public:
  /// `vectors` is int8 [count x dim], `scales` f32 [count], positive and finite.
  Codebook(const Kernel& kernel, const std::string& id, uint32_t dim, std::span<const int8_t> vectors,
           std::span<const float> scales);

  /// Identifies name and content; never 0.
  uint64_t hash() const { return hash_; }
  uint32_t count() const { return centroids_.rows; }

  /// Fills codes, codeOffsets and codebook: per chunk the unique centroids with the largest dot product.
  void assign(RecordParts& parts) const;

  /// One byte per centroid and query token, [count x tokensPadded]: the similarity above the least one of that
  /// token, in steps common to all tokens. Sums of maxima rank chunks like the approximate MaxSim.
  struct Table {
    uint32_t tokensPadded;
    AlignedVector<uint8_t> levels;
    /// approximate score = base + step * sum of maxima
    float base;
    float step;
  };
  Table table(const PackedQuery& query) const;

 private:
  const Kernel& kernel_;
  const uint32_t dim_;
  uint64_t hash_;
  std::vector<int8_t> vectors_;
  std::vector<uint16_t> scales_;
  /// What a stored scale of 1 stands for.
  float unit_ = 1.0f;
  Chunk centroids_{};
};

}  // namespace maxsimd
