// Which rows of one matrix are nearest to the rows of another: the kernels' query side used for blocks of token
// vectors instead of a query. Similarity = dot product times the scale of the row compared with.
#pragma once

#include "kernels/contract.h"

#include <cstdint>

namespace maxsimd {

/// For each of `count` vectors (i8 [count x dim]) the row of `among` with the largest similarity, the lowest of equals.
void nearestOf(const Kernel& kernel, uint32_t dim, const int8_t* vectors, uint32_t count, const Chunk& among,
               float* similarities, uint32_t* rows);

/// For each of `count` vectors the `several` <= among.rows most similar rows of `among`, in no order: u32 [count x
/// several].
void nearestSeveral(const Kernel& kernel, uint32_t dim, const int8_t* vectors, uint32_t count, const Chunk& among,
                    uint32_t several, uint32_t* rows);

}  // namespace maxsimd
