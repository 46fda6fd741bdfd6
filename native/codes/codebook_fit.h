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

/// Token vectors and their scales, each padded for the kernels.
struct TokenSample {
  /// i8 [rows x dim]
  std::vector<int8_t> vectors;
  /// f16 [rows]
  std::vector<uint16_t> scales;
  uint32_t rows = 0;
};

/// `sample` holds at least one row. Fits at most `count` centroids, never more than rows. `part` is a smaller sample of the
/// same token vectors: it places groups and codewords. The same samples give the same codebook.
CodebookData fitCodebook(const Kernel& kernel, uint32_t dim, const TokenSample& sample, const TokenSample& part,
                         uint32_t count, const Deadline& deadline);

}  // namespace maxsimd
