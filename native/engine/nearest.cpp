#include "engine/nearest.h"

#include "engine/query.h"

#include <algorithm>
#include <numeric>
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
  std::vector<uint32_t> order(among.rows);
  for (uint32_t first = 0; first < count; first += blockVectors) {
    const uint32_t block = std::min(blockVectors, count - first);
    const Query query(kernel, vectors + size_t(first) * dim, block, dim);
    const uint32_t stride = query.packed().tokensPadded;
    kernel.similarities(query.packed(), among, similarities.data());
    for (uint32_t i = 0; i < block; ++i) {
      std::iota(order.begin(), order.end(), 0u);
      std::nth_element(order.begin(), order.begin() + long(several - 1), order.end(), [&](uint32_t a, uint32_t b) {
        const float x = similarities[size_t(a) * stride + i], y = similarities[size_t(b) * stride + i];
        return x > y || (x == y && a < b);
      });
      std::copy_n(order.begin(), several, rows + size_t(first + i) * several);
    }
  }
}

}  // namespace maxsimd
