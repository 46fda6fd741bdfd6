// The directions along which residuals are largest: their principal components, not centred (Jolliffe, Principal Component
// Analysis, 2002, section 3.3), found by orthogonal iteration (Golub and Van Loan, Matrix Computations, 2013, section
// 8.2.4). Product quantisation loses least if each subspace has directions of much and of little variance (Ge, He, Ke and
// Sun, CVPR 2013), so large and small ones take turns.
#pragma once

#include "runtime/deadline.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// Returns f32 [directions x dim], orthonormal, in the order of the subspaces: at most `SearchTuning::directions` and at
/// most `dim`. `residuals` is f32 [blocks][dim][rowLanes].
std::vector<float> directionsOf(const std::vector<float>& residuals, uint32_t dim, const Deadline& deadline);

}  // namespace maxsimd
