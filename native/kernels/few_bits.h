// Makes rows of 1, 2 or 4 bits (rows.h) of f32 vectors. src/encoder/inference/few-bits.ts says why they are rotated.
//
// Sums are of doubles, in the order of the components, and all else is rounded to f32. So every machine makes the same
// rows.
#pragma once

#include "kernels/rows.h"

#include <span>

namespace maxsimd {

/// Rotates f32 [rows x dim] in place. `mean` [dim] is subtracted first, unless it is empty. `factors` [rounds x dim]
/// multiply the components before the Walsh-Hadamard transform of each round, which is in turn of the first and of the
/// last 2^k dimensions.
void rotateRows(std::span<float> vectors, uint32_t dim, std::span<const float> mean, std::span<const float> factors);

/// Quantises f32 [rows x dim], which is rotated, into `stored` [rows x shape.bytes()] and `scales` [rows]. A zero row
/// has scale 0. A row with a value that is no number has such a scale.
void quantizeRows(std::span<const float> vectors, RowShape shape, std::span<int8_t> stored, std::span<float> scales);

}  // namespace maxsimd
