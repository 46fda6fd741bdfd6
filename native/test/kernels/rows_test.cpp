// Pooled rows and refined codes beside plain programs that say the same.
#include "kernels/encoding/pooling.h"
#include "kernels/encoding/quantized_rows.h"
#include "kernels/half.h"
#include "test/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

namespace maxsimd::test {
namespace {

std::vector<float> randomVectors(Random& random, size_t rows, size_t dim) {
  std::normal_distribution<float> normal;
  std::vector<float> vectors(rows * dim);
  for (size_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (size_t d = 0; d < dim; ++d) {
      vectors[row * dim + d] = normal(random) + (d == row % 7 % dim ? 3 : 0);
      squares += vectors[row * dim + d] * vectors[row * dim + d];
    }
    for (size_t d = 0; d < dim; ++d) vectors[row * dim + d] /= float(std::sqrt(squares));
  }
  return vectors;
}

struct Pooled {
  std::vector<float> vectors;
  std::vector<uint32_t> representatives, pooledOf;
};

Pooled pool(const std::vector<float>& vectors, uint32_t dim, uint32_t factor) {
  const size_t rows = vectors.size() / dim, left = pooledRows(rows, factor);
  Pooled pooled{std::vector<float>(left * dim), std::vector<uint32_t>(left), std::vector<uint32_t>(rows)};
  poolRows(vectors, dim, factor, {pooled.vectors, pooled.representatives, pooled.pooledOf});
  return pooled;
}

/// By how much the sum of squared distances to the means of clusters grows if two of them merge.
double wardHeight(const std::vector<float>& vectors, size_t dim, const std::vector<uint32_t>& a,
                  const std::vector<uint32_t>& b) {
  double squares = 0;
  for (size_t d = 0; d < dim; ++d) {
    double sums[2] = {};
    for (const uint32_t row : a) sums[0] += vectors[row * dim + d];
    for (const uint32_t row : b) sums[1] += vectors[row * dim + d];
    const double difference = sums[0] / double(a.size()) - sums[1] / double(b.size());
    squares += difference * difference;
  }
  return squares * double(a.size() * b.size()) / double(a.size() + b.size());
}

using Clusters = std::vector<std::vector<uint32_t>>;

/// Merges the two clusters that are nearest to each other, again and again.
Clusters wardClusters(const std::vector<float>& vectors, size_t dim, size_t count) {
  Clusters clusters(vectors.size() / dim);
  for (uint32_t row = 0; row < clusters.size(); ++row) clusters[row] = {row};
  while (clusters.size() > count) {
    double least = std::numeric_limits<double>::infinity();
    size_t low = 0, high = 0;
    for (size_t a = 0; a < clusters.size(); ++a) {
      for (size_t b = a + 1; b < clusters.size(); ++b) {
        const double height = wardHeight(vectors, dim, clusters[a], clusters[b]);
        if (height < least) std::tie(least, low, high) = std::tuple(height, a, b);
      }
    }
    clusters[low].insert(clusters[low].end(), clusters[high].begin(), clusters[high].end());
    clusters.erase(clusters.begin() + ptrdiff_t(high));
  }
  return clusters;
}

/// The rows in 8 bits and at unit length, as their distances are measured.
std::vector<float> rounded(const std::vector<float>& vectors, size_t dim) {
  std::vector<float> all(vectors.size());
  for (size_t row = 0; row < vectors.size() / dim; ++row) {
    float most = 0, squares = 0;
    for (size_t d = 0; d < dim; ++d) most = std::max(most, std::abs(vectors[row * dim + d]));
    for (size_t d = 0; d < dim; ++d) {
      all[row * dim + d] = std::nearbyint(vectors[row * dim + d] * (127 / most));
      squares += all[row * dim + d] * all[row * dim + d];
    }
    for (size_t d = 0; d < dim; ++d) all[row * dim + d] /= std::sqrt(squares);
  }
  return all;
}

const Case clusters("rows", "are pooled as Ward's criterion says", [](Random& random) {
  int equal = 0;
  const int all = rounds(200);
  for (int round = 0; round < all; ++round) {
    const uint32_t rows = between(random, 1, 40), dim = between(random, 2, 48), factor = between(random, 2, 5);
    const std::vector<float> vectors = randomVectors(random, rows, dim);
    const Pooled pooled = pool(vectors, dim, factor);
    Clusters found(pooled.representatives.size());
    for (uint32_t row = 0; row < rows; ++row) found[pooled.pooledOf[row]].push_back(row);
    Clusters expected = wardClusters(rounded(vectors, dim), dim, (rows + factor - 1) / factor);
    for (auto& cluster : expected) std::sort(cluster.begin(), cluster.end());
    equal += int(std::set(found.begin(), found.end()) == std::set(expected.begin(), expected.end()));
    CHECK(std::is_sorted(pooled.representatives.begin(), pooled.representatives.end()));
    for (uint32_t row = 0; row < found.size(); ++row) {
      CHECK(pooled.pooledOf[pooled.representatives[row]] == row);
      double squares = 0;
      for (size_t d = 0; d < dim; ++d) squares += std::pow(pooled.vectors[row * dim + d], 2);
      CHECK(std::abs(squares - 1) < 1e-5);
    }
  }
  std::printf("  equal clusters in %d of %d\n", equal, all);
  // Two pairs may be equally near but for rounding.
  CHECK(equal >= all - all / 100);
});

const Case equals("rows", "that are equal are pooled, the lower ones first", [](Random& random) {
  const std::vector<float> two = randomVectors(random, 2, 16);
  std::vector<float> vectors;
  for (int row = 0; row < 9; ++row)
    vectors.insert(vectors.end(), two.begin() + row % 2 * 16, two.begin() + row % 2 * 16 + 16);
  const Pooled pooled = pool(vectors, 16, 5);
  CHECK((pooled.pooledOf == std::vector<uint32_t>{0, 1, 0, 1, 0, 1, 0, 1, 0}));
  CHECK((pooled.representatives == std::vector<uint32_t>{0, 1}));
});

const Case many("rows", "of long chunks are pooled in parts", [](Random& random) {
  const uint32_t rows = 2 * pooledTogetherMost + 7, dim = 8;
  const std::vector<float> vectors = randomVectors(random, rows, dim);
  const Pooled pooled = pool(vectors, dim, 3);
  CHECK(std::is_sorted(pooled.representatives.begin(), pooled.representatives.end()));
  for (uint32_t row = 0; row < pooled.representatives.size(); ++row)
    CHECK(pooled.pooledOf[pooled.representatives[row]] == row);
});

/// The procedure of refined.h with plain sums.
std::vector<int32_t> refinedPlainly(const std::vector<float>& moment, const float* vector, size_t dim, float scale,
                                    int32_t most, std::vector<int32_t> components) {
  std::vector<float> gradient(dim);
  for (size_t j = 0; j < dim; ++j) {
    const float error = vector[j] - scale * float(components[j]);
    for (size_t i = 0; i < dim; ++i) gradient[i] = gradient[i] + error * moment[j * dim + i];
  }
  float product = 0;
  for (uint32_t move = 0; move < movesMost; ++move) {
    const float factor = ownWeight * product;
    float greatest = 0, towards = 0;
    size_t chosen = dim;
    for (size_t i = 0; i < dim; ++i) {
      const float t = gradient[i] + factor * vector[i];
      const float gain = std::abs(t) - scale * (moment[i * dim + i] + ownWeight * vector[i] * vector[i]);
      if (std::abs(components[i] + (t < 0 ? -2 : 2)) > most || !(gain > greatest)) continue;
      greatest = gain;
      towards = t;
      chosen = i;
    }
    if (chosen == dim) break;
    const float change = scale * (towards < 0 ? -2.0f : 2.0f);
    components[chosen] += towards < 0 ? -2 : 2;
    for (size_t i = 0; i < dim; ++i) gradient[i] = gradient[i] - change * moment[chosen * dim + i];
    product = product - change * vector[chosen];
  }
  return components;
}

struct Stored {
  std::vector<int8_t> bytes;
  std::vector<float> scales;
};

Stored store(const std::vector<float>& vectors, RowShape shape, const RowMoment* moment) {
  const size_t rows = vectors.size() / shape.dim;
  Stored stored{std::vector<int8_t>(rows * shape.bytes()), std::vector<float>(rows)};
  quantizeRows(vectors, shape, moment, stored.bytes, stored.scales);
  return stored;
}

const Case refined("rows", "are refined code by code", [](Random& random) {
  for (int round = 0; round < rounds(60); ++round) {
    const uint32_t dim = between(random, 1, 70), rows = between(random, 1, 9), bits = 1u << between(random, 0, 2);
    const RowShape shape(dim, bits);
    const std::vector<float> vectors = randomVectors(random, rows, dim);
    std::vector<uint16_t> halves(size_t(dim) * dim);
    std::vector<float> moment(halves.size());
    for (size_t i = 0; i < dim; ++i) {
      for (size_t j = 0; j < dim; ++j) {
        float sum = 0;
        for (size_t row = 0; row < rows; ++row) sum += vectors[row * dim + i] * vectors[row * dim + j];
        halves[i * dim + j] = floatToHalf(sum / float(rows));
        moment[i * dim + j] = halfToFloat(halves[i * dim + j]);
      }
    }
    const RowMoment given(halves, dim);
    const Stored nearest = store(vectors, shape, nullptr), found = store(vectors, shape, &given);
    for (size_t row = 0; row < rows; ++row) {
      std::vector<int32_t> components(dim), moved(dim);
      for (uint32_t d = 0; d < dim; ++d) {
        components[d] = componentOf(&nearest.bytes[row * shape.bytes()], bits, d);
        moved[d] = componentOf(&found.bytes[row * shape.bytes()], bits, d);
      }
      CHECK(moved ==
            refinedPlainly(moment, &vectors[row * dim], dim, nearest.scales[row], componentMost(bits), components));
    }
  }
});

}  // namespace
}  // namespace maxsimd::test
