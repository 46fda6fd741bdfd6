#include "codes/nearest.h"

#include "runtime/query.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace maxsimd {
namespace {

/// Vectors packed as one query.
constexpr uint32_t blockVectors = 64;

}  // namespace

void nearestOf(const Kernel& kernel, uint32_t dim, const int8_t* vectors, uint32_t count, const Chunk& among,
               float* similarities, uint32_t* rows) {
  float blockSimilarities[blockVectors];
  uint32_t blockRows[blockVectors];
  for (uint32_t first = 0; first < count; first += blockVectors) {
    const uint32_t block = std::min(blockVectors, count - first);
    const Query query(kernel, vectors + size_t(first) * dim, block, dim);
    kernel.best(query.packed(), among, blockSimilarities, blockRows);
    std::copy_n(blockSimilarities, block, similarities + first);
    std::copy_n(blockRows, block, rows + first);
  }
}

void nearestSeveral(const Kernel& kernel, uint32_t dim, const int8_t* vectors, uint32_t count, const Chunk& among,
                    uint32_t several, uint32_t* rows) {
  std::vector<float> similarities(size_t(among.rows) * blockVectors);
  for (uint32_t first = 0; first < count; first += blockVectors) {
    const uint32_t block = std::min(blockVectors, count - first);
    const Query query(kernel, vectors + size_t(first) * dim, block, dim);
    const uint32_t stride = query.packed().tokensPadded;
    kernel.similarities(query.packed(), among, similarities.data());
    // One pass finds one neighbour of each vector of the block, side by side, and strikes it out for the next.
    for (uint32_t found = 0; found < several; ++found) {
      float most[blockVectors];
      int32_t where[blockVectors];
      std::fill_n(most, stride, -INFINITY);
      std::fill_n(where, stride, 0);
      for (uint32_t row = 0; row < among.rows; ++row) {
        const float* from = similarities.data() + size_t(row) * stride;
        for (uint32_t i = 0; i < stride; ++i) {
          const bool better = from[i] > most[i];
          most[i] = better ? from[i] : most[i];
          where[i] = better ? int32_t(row) : where[i];
        }
      }
      for (uint32_t i = 0; i < block; ++i) {
        rows[size_t(first + i) * several + found] = uint32_t(where[i]);
        similarities[size_t(where[i]) * stride + i] = -INFINITY;
      }
    }
  }
}

}  // namespace maxsimd
