#include "routes.h"

#include "codes/nearest.h"
#include "kernels/approximate/code_loops.h"
#include "kernels/half.h"
#include "runtime/query.h"

#include <usearch/index.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

namespace research {
namespace {

constexpr uint32_t blockCentroids = 256;
constexpr uint32_t sampledEvery = 16;
constexpr uint32_t sampleMargin = 4;
constexpr uint32_t entryValues = 256;

struct Scored {
  float similarity;
  uint32_t centroid;
};

std::vector<uint32_t> bestOf(std::vector<Scored>& scored, uint32_t several) {
  const size_t count = std::min<size_t>(several, scored.size());
  std::nth_element(scored.begin(), scored.begin() + long(count) - 1, scored.end(),
                   [](const Scored& a, const Scored& b) { return a.similarity > b.similarity; });
  std::vector<uint32_t> best;
  for (size_t i = 0; i < count; ++i) best.push_back(scored[i].centroid);
  return best;
}

/// The entry from which on `wanted` are met.
uint8_t leastFor(const uint32_t* met, uint32_t wanted) {
  uint32_t entry = entryValues - 1;
  for (uint32_t sum = met[entry]; sum < wanted && entry > 1;) sum += met[--entry];
  return uint8_t(entry);
}

}  // namespace

Found byProducts(const maxsimd::Kernel& kernel, const Centroids& centroids, const int8_t* tokens, uint32_t count,
                 uint32_t several, std::vector<uint8_t>& table) {
  const maxsimd::Query query(kernel, tokens, count, dim);
  const uint32_t stride = query.packed().tokensPadded, all = centroids.count();
  const uint32_t width = (count + maxsimd::tableTokens - 1) / maxsimd::tableTokens * maxsimd::tableTokens;
  table.resize(size_t(all) * width);
  std::vector<float> similarities(size_t(blockCentroids) * stride), floors(stride, 0.0f), factors(stride, 0.0f);
  for (uint32_t i = 0; i < count; ++i) {
    int32_t square = 0;
    for (uint32_t d = 0; d < dim; ++d) square += int32_t(tokens[i * dim + d]) * tokens[i * dim + d];
    factors[i] = 255.0f / std::sqrt(float(std::max(1, square)));
  }
  for (uint32_t first = 0; first < all; first += blockCentroids) {
    const uint32_t rows = std::min(blockCentroids, all - first);
    kernel.similarities(query.packed(), centroids.chunk(first, first + rows), similarities.data());
    kernel.loops->quantizeEntries(similarities.data(), rows, stride, stride, floors.data(), factors.data(),
                                  table.data() + size_t(first) * width, width);
  }
  std::vector<uint32_t> met(size_t(width) * entryValues, 0);
  for (uint32_t k = 0; k < all; k += sampledEvery) {
    for (uint32_t i = 0; i < count; ++i) ++met[i * entryValues + table[size_t(k) * width + i]];
  }
  std::vector<uint8_t> least(width, 0);
  for (uint32_t i = 0; i < count; ++i)
    least[i] = leastFor(met.data() + size_t(i) * entryValues, (several * sampleMargin + sampledEvery - 1) / sampledEvery);
  std::vector<std::vector<Scored>> scored(count);
  std::vector<maxsimd::TableHit> hits;
  constexpr uint32_t together = 65536;
  for (uint32_t first = 0; first < all; first += together) {
    hits.clear();
    kernel.loops->collectHits(table.data() + size_t(first) * width, std::min(together, all - first), width,
                              least.data(), hits);
    for (const auto& hit : hits) scored[hit.token].push_back({float(hit.entry), first + hit.code});
  }
  Found found;
  for (auto& own : scored) found.push_back(bestOf(own, several));
  return found;
}

Found byTree(const maxsimd::Kernel& kernel, const Centroids& centroids, const int8_t* tokens, uint32_t count,
             uint32_t several, uint32_t probed) {
  const maxsimd::Query query(kernel, tokens, count, dim);
  const uint32_t stride = query.packed().tokensPadded, groups = centroids.groupCount();
  std::vector<float> similarities(size_t(groups) * stride);
  kernel.similarities(query.packed(), centroids.groupChunk(), similarities.data());
  std::vector<std::vector<uint32_t>> members(groups);
  std::vector<Scored> own(groups);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t g = 0; g < groups; ++g) own[g] = {similarities[size_t(g) * stride + i], g};
    for (const uint32_t g : bestOf(own, probed)) members[g].push_back(i);
  }
  std::vector<std::vector<Scored>> scored(count);
  std::vector<int8_t> gathered;
  for (uint32_t g = 0; g < groups; ++g) {
    if (members[g].empty()) continue;
    gathered.resize(members[g].size() * dim);
    for (size_t i = 0; i < members[g].size(); ++i)
      std::copy_n(tokens + size_t(members[g][i]) * dim, dim, gathered.data() + i * dim);
    const maxsimd::Query sharing(kernel, gathered.data(), uint32_t(members[g].size()), dim);
    const uint32_t first = centroids.starts[g], rows = centroids.starts[g + 1] - first;
    const uint32_t width = sharing.packed().tokensPadded;
    similarities.resize(std::max(similarities.size(), size_t(rows) * width));
    kernel.similarities(sharing.packed(), centroids.chunk(first, first + rows), similarities.data());
    for (uint32_t k = 0; k < rows; ++k) {
      for (size_t i = 0; i < members[g].size(); ++i)
        scored[members[g][i]].push_back({similarities[size_t(k) * width + i], first + k});
    }
  }
  Found found;
  for (auto& one : scored) found.push_back(bestOf(one, several));
  return found;
}

Found assignByTree(const maxsimd::Kernel& kernel, const Centroids& centroids, const int8_t* rows, uint32_t count) {
  constexpr uint32_t probed = 8;
  std::vector<uint32_t> groups(size_t(count) * probed), nearest;
  maxsimd::nearestSeveral(kernel, dim, rows, count, centroids.groupChunk(), probed, groups.data());
  std::vector<std::vector<uint32_t>> members(centroids.groupCount());
  for (size_t i = 0; i < groups.size(); ++i) members[groups[i]].push_back(uint32_t(i / probed));
  std::vector<Scored> best(count, {-INFINITY, 0});
  std::vector<int8_t> gathered;
  std::vector<float> similarities;
  for (uint32_t g = 0; g < members.size(); ++g) {
    const auto& own = members[g];
    gathered.resize(own.size() * dim);
    for (size_t i = 0; i < own.size(); ++i) std::copy_n(rows + size_t(own[i]) * dim, dim, gathered.data() + i * dim);
    similarities.resize(own.size());
    nearest.resize(own.size());
    const uint32_t first = centroids.starts[g];
    maxsimd::nearestOf(kernel, dim, gathered.data(), uint32_t(own.size()),
                       centroids.chunk(first, centroids.starts[g + 1]), similarities.data(), nearest.data());
    for (size_t i = 0; i < own.size(); ++i) {
      if (similarities[i] > best[own[i]].similarity) best[own[i]] = {similarities[i], first + nearest[i]};
    }
  }
  Found found;
  for (const Scored& one : best) found.push_back({one.centroid});
  return found;
}

using Hnsw = unum::usearch::index_gt<float, uint32_t, uint32_t>;

struct Graph::Index {
  Hnsw graph;
};

namespace {

/// Minus the dot product: the nearest has the least.
struct Metric {
  const maxsimd::Kernel& kernel;
  const Centroids& centroids;

  const int8_t* vector(uint32_t k) const { return centroids.vectors.data() + size_t(k) * dim; }
  float scale(uint32_t k) const { return maxsimd::halfToFloat(centroids.scales[k]); }

  template <typename Entry>
  float operator()(const int8_t* token, const Entry& entry) const noexcept {
    const uint32_t k = get_key(entry);
    return -float(kernel.dot(token, vector(k), dim)) * scale(k);
  }
  template <typename Entry>
  float operator()(const Entry& a, const Entry& b) const noexcept {
    const uint32_t k = get_key(a), j = get_key(b);
    return -float(kernel.dot(vector(k), vector(j), dim)) * scale(k) * scale(j);
  }
};

}  // namespace

Graph::Graph(const maxsimd::Kernel& kernel, const Centroids& centroids, uint32_t connectivity, uint32_t expansion)
    : centroids_(centroids) {
  auto made = Hnsw::make({connectivity, 2 * connectivity});
  if (!made) throw std::runtime_error("no graph");
  index_.reset(new Index{std::move(made.index)});
  if (!index_->graph.try_reserve({centroids.count(), 1})) throw std::runtime_error("no memory");
  const Metric metric{kernel, centroids};
  unum::usearch::index_update_config_t config;
  config.expansion = expansion;
  // Neighbours follow each other among centroids: an order without neighbours makes the better graph.
  std::vector<uint32_t> order(centroids.count());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  for (const uint32_t k : order) {
    if (!index_->graph.add(k, metric.vector(k), metric, config)) throw std::runtime_error("not added");
  }
}

Graph::~Graph() = default;

Found Graph::search(const maxsimd::Kernel& kernel, const int8_t* tokens, uint32_t count, uint32_t several,
                    uint32_t expansion) const {
  const Metric metric{kernel, centroids_};
  unum::usearch::index_search_config_t config;
  config.expansion = expansion;
  Found found(count);
  for (uint32_t i = 0; i < count; ++i) {
    const int8_t* token = tokens + size_t(i) * dim;
    auto result = index_->graph.search(token, several, metric, config);
    for (size_t r = 0; r < result.size(); ++r) found[i].push_back(get_key(result[r].member));
  }
  return found;
}

size_t Graph::bytes() const { return index_->graph.memory_usage(); }

}  // namespace research
