// Fits a codebook on token vectors.
//
// Centroids are found by spherical k-means (Dhillon and Modha, Machine Learning 42, 2001) on two levels: first the
// groups, then the centroids within each group. That takes a small part of the time of comparing every vector with
// every centroid. Codewords are then found by plain k-means on the residuals along some directions
// (residual_directions.h), in each subspace alone.
#pragma once

#include "codes/codebook.h"
#include "runtime/deadline.h"
#include "kernels/contract.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// Token vectors and their scales. Both are padded with `readPaddingBytes` for the kernels.
struct TokenSample {
  /// i8 [rows x dim]
  std::vector<int8_t> vectors;
  /// f16 [rows]
  std::vector<uint16_t> scales;
  uint32_t rows = 0;
};

/// Fits at most `count` centroids, and never more than `sample` has rows. `sample` must have at least one row. `part`
/// is a smaller sample of the same token vectors, which places the groups and the codewords. The same samples give the
/// same codebook. Without `directions` it can be read by earlier releases, and describes residuals less well.
CodebookData fitCodebook(const Kernel& kernel, uint32_t dim, const TokenSample& sample, const TokenSample& part,
                         uint32_t count, const Deadline& deadline, bool directions = true);

}  // namespace maxsimd
