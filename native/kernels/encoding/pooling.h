// Pools the rows of a chunk: similar rows become one (Clavié, Chaffin and Adams, arXiv:2409.14683).
//
// The unit rows of a chunk are clustered by Ward's criterion (Journal of the American Statistical Association 58, 1963) on
// squared Euclidean distances, until ceil(rows / factor) clusters are left, at least 1: merges are sorted by height, and the
// lowest ones are done. A pooled row is the unit mean of its cluster. Its representative is the row of the cluster with the
// greatest product with the mean. Among equals the lower row number counts. Pooled rows are in the order of their
// representatives.
//
// Distances come from integer products of rows rounded to 8 bits, so each machine makes the same clusters. A chunk of more
// than `pooledTogetherMost` rows is clustered in parts of equal size, because the work grows with the square.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace maxsimd {

inline constexpr size_t pooledTogetherMost = 1024;

/// How many rows are left of a chunk.
constexpr size_t pooledRows(size_t rows, uint32_t factor) { return (rows + factor - 1) / factor; }

/// Where the pooled rows of a chunk go.
struct PooledChunk {
  /// f32 [pooledRows x dim]: unit rows.
  std::span<float> vectors;
  /// u32 [pooledRows]: the row of the chunk that represents it, ascending.
  std::span<uint32_t> representatives;
  /// u32 [rows]: the pooled row that it is part of.
  std::span<uint32_t> pooledOf;
};

/// `vectors`: f32 [rows x dim]. A zero row stays one if it is alone. A value that is no number stays none.
void poolRows(std::span<const float> vectors, uint32_t dim, uint32_t factor, const PooledChunk& pooled);

}  // namespace maxsimd
