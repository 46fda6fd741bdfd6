// Makes stored rows (rows.h) of f32 vectors. src/encoder/inference/rows.ts says why those of 1, 2 and 4 bits are rotated.
//
// Sums are of doubles, in the order of the components, and all else is rounded to f32. So every machine makes the same
// rows.
#pragma once

#include "kernels/encoding/refined.h"
#include "kernels/rows.h"

#include <span>

namespace maxsimd {

/// Rotates f32 [rows x dim] in place. `mean` [dim] is subtracted first, unless it is empty. `factors` [rounds x dim]
/// multiply the components before the Walsh-Hadamard transform of each round, which is in turn of the first and of the
/// last 2^k dimensions. Without factors it only subtracts.
void rotateRows(std::span<float> vectors, uint32_t dim, std::span<const float> mean, std::span<const float> factors);

/// Quantises f32 [rows x dim] into `stored` [rows x shape.bytes()] and `scales` [rows]. Vectors for 1, 2 or 4 bits are
/// rotated, and their codes are refined unless `moment` is null. 8 bits are symmetric: the scale is the largest magnitude /
/// 127, and components are rounded half to even, as ONNX `QuantizeLinear` does. A zero row has scale 0. A row with a value
/// that is no number has such a scale, and so has one of 8 bits with an infinite value.
void quantizeRows(std::span<const float> vectors, RowShape shape, const RowMoment* moment, std::span<int8_t> stored,
                  std::span<float> scales);

}  // namespace maxsimd
