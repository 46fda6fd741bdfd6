// Token vectors from embedding directories, and centroids fitted on them in two levels.
#pragma once

#include "kernels/contract.h"

#include <cstdint>
#include <string>
#include <vector>

namespace research {

inline constexpr uint32_t dim = 128;

/// i8 [rows x dim], followed by the kernels' padding.
struct Rows {
  std::vector<int8_t> vectors;
  uint32_t rows = 0;
};

/// Token vectors of all directories, one after the other.
Rows readTokenVectors(const std::vector<std::string>& directories);
/// Query tokens of one directory, f32 there.
Rows readQueryTokens(const std::string& directory);

/// Groups of centroids; group g has [starts[g], starts[g + 1]).
struct Centroids {
  std::vector<int8_t> vectors, groups;
  std::vector<uint16_t> scales, groupScales;
  std::vector<uint32_t> starts{0};

  uint32_t count() const { return starts.back(); }
  uint32_t groupCount() const { return uint32_t(starts.size()) - 1; }
  maxsimd::Chunk chunk(uint32_t first, uint32_t last) const {
    return {vectors.data() + size_t(first) * dim, scales.data() + first, last - first};
  }
  maxsimd::Chunk groupChunk() const { return {groups.data(), groupScales.data(), groupCount()}; }
};

/// Spherical k-means: 2^(bits / 2) groups, then the centroids within each group.
Centroids fit(const maxsimd::Kernel& kernel, const Rows& rows, uint32_t bits, uint32_t rounds);

}  // namespace research
