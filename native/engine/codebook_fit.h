// Fits a codebook on token vectors: spherical k-means in two levels (Dhillon and Modha, Machine Learning 42, 2001;
// groups first, then centroids within each group), so that fitting and assigning cost a small part of comparing
// everything with everything.
#pragma once

#include "engine/codebook.h"
#include "engine/deadline.h"
#include "kernels/contract.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// Token vectors of a sample that a centroid stands for: more are not looked at.
inline constexpr uint32_t sampleRowsPerCentroid = 48;

/// Centroids for so many token vectors.
uint32_t centroidsFor(uint64_t rows);

/// `sample` is i8 [rows x dim] followed by `readPaddingBytes`, rows >= 1. Fits at most `count` centroids, never
/// more than rows. The same sample gives the same codebook.
CodebookData fitCodebook(const Kernel& kernel, uint32_t dim, const std::vector<int8_t>& sample, uint32_t rows,
                         uint32_t count, const Deadline& deadline);

}  // namespace maxsimd
