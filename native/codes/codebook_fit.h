// Fits a codebook on token vectors: spherical k-means in two levels (Dhillon and Modha, Machine Learning 42, 2001;
// groups first, then centroids within each group), so that fitting and assigning cost a small part of comparing
// everything with everything; then plain k-means of what the centroids leave over, subspace by subspace.
#pragma once

#include "codes/codebook.h"
#include "runtime/deadline.h"
#include "kernels/contract.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// Token vectors of a sample that a centroid stands for: more are not looked at, and at most so many in all, which take
/// some 800 MiB of memory.
inline constexpr uint32_t sampleRowsPerCentroid = 48;
inline constexpr uint32_t sampleRowsMost = 131'072 * sampleRowsPerCentroid;

/// Token vectors and their scales, each padded for the kernels.
struct TokenSample {
  /// i8 [rows x dim]
  std::vector<int8_t> vectors;
  /// f16 [rows]
  std::vector<uint16_t> scales;
  uint32_t rows = 0;
};

/// Codes of so many centroids tell chunks apart so well that shortlists may be shorter (docs/benchmarks.md).
inline constexpr uint32_t fineCentroids = 16384;

/// Centroids for so many token vectors, wherever products with them are dear.
uint32_t usualCentroids(uint64_t rows);

/// Likewise, and the fine ones from `fineFrom` token vectors on, which the kernel says.
uint32_t centroidsFor(uint64_t rows, uint64_t fineFrom);

/// Whether a codebook has more centroids than is usual: what they say of a chunk is nearer to its exact score.
inline bool isFine(const CodebookData& data) { return data.count() > usualCentroids(data.fittedRows); }

/// `sample` holds at least one row. Fits at most `count` centroids, never
/// more than rows. The same sample gives the same codebook.
CodebookData fitCodebook(const Kernel& kernel, uint32_t dim, TokenSample sample, uint32_t count,
                         const Deadline& deadline);

}  // namespace maxsimd
