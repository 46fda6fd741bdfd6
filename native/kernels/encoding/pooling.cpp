#include "kernels/encoding/pooling.h"

#include "kernels/encoding/row_loops.h"
#include "kernels/rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

namespace maxsimd {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Rounds rows to integers from -127 to 127, i16 [rows x width]. A row with an infinite value, or one that is no number,
/// becomes zeros.
std::vector<int16_t> roundRows(std::span<const float> vectors, size_t dim, size_t width) {
  // Adding 1.5 * 2^23 rounds to an integer, half to even, and leaves it in the lowest bits.
  constexpr float shift = 12'582'912;
  std::vector<int16_t> rounded(vectors.size() / dim * width);
  for (size_t r = 0; r < vectors.size() / dim; ++r) {
    const float* const __restrict row = vectors.data() + r * dim;
    int16_t* const __restrict to = rounded.data() + r * width;
    const float factor = 127 / largestMagnitude(row, dim);
    if (!(factor > 0 && factor < infinity)) continue;
    for (size_t d = 0; d < dim; ++d)
      to[d] = int16_t(std::bit_cast<int32_t>(row[d] * factor + shift) - std::bit_cast<int32_t>(shift));
  }
  return rounded;
}

/// Two clusters, by the lowest row of each, and the height at which they merge.
struct Join {
  float height;
  uint32_t low, high;
};

/// Clusters by chains of nearest neighbours (Murtagh, The Computer Journal 26, 1983): a chain goes from each cluster to its
/// nearest one, until two are nearest to each other. They merge, and the chain goes on from where it was.
class Clustering {
 public:
  Clustering(std::span<const float> vectors, size_t dim)
      : rows_(vectors.size() / dim), distances_(rows_ * rows_), sizes_(rows_, 1.0f), gone_(rows_) {
    const size_t width = paddedComponents(dim);
    std::vector<int32_t> products(rows_ * rows_);
    loops_.products(roundRows(vectors, dim, width).data(), rows_, width, products.data());
    std::vector<float> inverses(rows_);
    for (size_t r = 0; r < rows_; ++r) {
      const int32_t square = products[r * rows_ + r];
      inverses[r] = square == 0 ? 0 : float(1 / std::sqrt(double(square)));
    }
    for (size_t a = 0; a < rows_; ++a) {
      const int32_t* const __restrict from = &products[a * rows_];
      float* const __restrict to = row(a);
      for (size_t b = 0; b < rows_; ++b) {
        const float distance = 2 - 2 * (float(from[b]) * (inverses[a] * inverses[b]));
        to[b] = distance > 0 ? distance : 0;
      }
      to[a] = infinity;
    }
  }

  /// All joins, down to one cluster.
  std::vector<Join> joins() {
    std::vector<Join> joins;
    std::vector<uint32_t> chain;
    for (uint32_t first = 0; joins.size() + 1 < rows_;) {
      while (gone_[first] > 0) ++first;
      if (chain.empty()) chain.push_back(first);
      const uint32_t last = chain.back();
      const float* const distances = row(last);
      auto next = uint32_t(loops_.nearest(distances, gone_.data(), rows_));
      if (chain.size() > 1) {
        const uint32_t before = chain[chain.size() - 2];
        if (distances[before] <= distances[next]) next = before;
        if (next == before) {
          joins.push_back(join(std::min(last, next), std::max(last, next)));
          chain.resize(chain.size() - 2);
          continue;
        }
      }
      chain.push_back(next);
    }
    return joins;
  }

 private:
  float* row(size_t at) { return &distances_[at * rows_]; }

  Join join(uint32_t low, uint32_t high) {
    const float height = row(low)[high];
    loops_.join(row(low), row(high), sizes_.data(), rows_, sizes_[low], sizes_[high], height);
    sizes_[low] += sizes_[high];
    gone_[high] = infinity;
    row(low)[low] = infinity;
    for (size_t i = 0; i < rows_; ++i) row(i)[low] = row(low)[i];
    return {height, low, high};
  }

  const RowLoops& loops_ = rowLoops();
  const size_t rows_;
  /// f32 [rows x rows], infinite between a row and itself. A cluster has the place of its lowest row.
  std::vector<float> distances_;
  std::vector<float> sizes_;
  /// Infinite for rows that are part of another one's cluster.
  std::vector<float> gone_;
};

/// For each row the lowest row of its cluster.
std::vector<uint32_t> lowestRows(std::span<const float> vectors, size_t dim, size_t clusters) {
  const size_t rows = vectors.size() / dim;
  std::vector<uint32_t> lowestOf(rows);
  std::iota(lowestOf.begin(), lowestOf.end(), 0);
  if (clusters == rows) return lowestOf;
  std::vector<Join> joins = Clustering(vectors, dim).joins();
  std::sort(joins.begin(), joins.end(), [](const Join& a, const Join& b) {
    return std::tie(a.height, a.low, a.high) < std::tie(b.height, b.low, b.high);
  });
  const auto lowest = [&](uint32_t row) {
    while (lowestOf[row] != row) row = lowestOf[row];
    return row;
  };
  for (size_t i = 0; i < rows - clusters; ++i) {
    const uint32_t a = lowest(joins[i].low), b = lowest(joins[i].high);
    lowestOf[std::max(a, b)] = std::min(a, b);
  }
  for (uint32_t row = 0; row < rows; ++row) lowestOf[row] = lowest(row);
  return lowestOf;
}

/// Four sums of doubles, each of every fourth component, and then their sum.
double productOf(const float* a, const float* b, size_t dim) {
  double sums[4] = {};
  for (size_t d = 0; d < dim; ++d) sums[d % 4] += double(a[d]) * double(b[d]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

struct Cluster {
  std::vector<uint32_t> rows;
  uint32_t representative;
  std::vector<float> mean;
};

/// `rows`: ascending.
Cluster clusterOf(std::span<const float> vectors, size_t dim, std::vector<uint32_t> rows) {
  const auto row = [&](uint32_t at) { return vectors.data() + at * dim; };
  Cluster cluster{std::move(rows), 0, std::vector<float>(dim)};
  cluster.representative = cluster.rows[0];
  for (const uint32_t at : cluster.rows) {
    for (size_t d = 0; d < dim; ++d) cluster.mean[d] += row(at)[d];
  }
  // The only row of a cluster stays as it is.
  if (cluster.rows.size() == 1) return cluster;
  double greatest = -infinity;
  for (const uint32_t at : cluster.rows) {
    const double product = productOf(row(at), cluster.mean.data(), dim);
    if (product > greatest) cluster.representative = at;
    greatest = std::max(greatest, product);
  }
  const double length = std::sqrt(productOf(cluster.mean.data(), cluster.mean.data(), dim));
  for (float& value : cluster.mean) value = length == 0 ? 0 : float(value / length);
  return cluster;
}

/// `clusters` of consecutive rows, in the order of their representatives.
std::vector<Cluster> clustersOf(std::span<const float> vectors, size_t dim, size_t clusters) {
  const std::vector<uint32_t> lowestOf = lowestRows(vectors, dim, clusters);
  std::vector<std::vector<uint32_t>> rowsOf(lowestOf.size());
  for (uint32_t row = 0; row < lowestOf.size(); ++row) rowsOf[lowestOf[row]].push_back(row);
  std::vector<Cluster> found;
  for (std::vector<uint32_t>& rows : rowsOf) {
    if (!rows.empty()) found.push_back(clusterOf(vectors, dim, std::move(rows)));
  }
  std::sort(found.begin(), found.end(),
            [](const Cluster& a, const Cluster& b) { return a.representative < b.representative; });
  return found;
}

}  // namespace

void poolRows(std::span<const float> vectors, uint32_t dim, uint32_t factor, const PooledChunk& pooled) {
  const size_t rows = vectors.size() / dim, parts = (rows + pooledTogetherMost - 1) / pooledTogetherMost;
  for (size_t part = 0; part < parts; ++part) {
    const size_t first = rows * part / parts, end = rows * (part + 1) / parts;
    size_t to = pooledRows(first, factor);
    // Every join is of two clusters, so exactly `count` are left.
    const size_t count = pooledRows(end, factor) - to;
    for (const Cluster& cluster : clustersOf(vectors.subspan(first * dim, (end - first) * dim), dim, count)) {
      std::copy(cluster.mean.begin(), cluster.mean.end(), pooled.vectors.begin() + ptrdiff_t(to * dim));
      pooled.representatives[to] = uint32_t(first) + cluster.representative;
      for (const uint32_t row : cluster.rows) pooled.pooledOf[first + row] = uint32_t(to);
      ++to;
    }
  }
}

}  // namespace maxsimd
