#include "candidates/nearest_centroids.h"

#include "codes/search_tuning.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace maxsimd {
namespace {

/// Chunks that are met at each entry of a query token.
using Visits = std::vector<std::array<float, entryMax + 1>>;

/// The highest entry, at least `floors`, from which on `wanted` chunks are met: of each token, u8 [floors].
std::vector<uint8_t> entriesMeeting(const Visits& met, float wanted, const std::vector<uint8_t>& floors) {
  std::vector<uint8_t> least = floors;
  for (size_t i = 0; i < met.size(); ++i) {
    uint32_t entry = entryMax;
    for (float sum = met[i][entry]; sum < wanted && entry > floors[i];) sum += met[i][--entry];
    least[i] = uint8_t(entry);
  }
  return least;
}

}  // namespace

float NearestCentroids::Group::met(uint32_t centroid) const {
  float sum = 0;
  for (const Lengths& lengths : segments) sum += float(lengths.ofLists[centroid]) * lengths.selected;
  return sum;
}

NearestCentroids::NearestCentroids(const ShortlistSearch& search, float visits) {
  for (const CodedSegment& coded : search.segments) {
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) { return one.table == coded.table; });
    if (group == groups_.end()) group = groups_.insert(groups_.end(), {coded.table, {}, Probes(search.tokens)});
    group->segments.push_back({coded.codes->listLengths(), float(coded.selected->count) / float(coded.codes->chunks())});
  }
  const std::vector<uint8_t> floors = estimateLeast(search, visits);
  Visits met(search.tokens);
  std::vector<std::vector<TableHit>> hits;
  for (const Group& group : groups_) {
    hits.push_back(hitsOf(search, group, floors));
    // Hits come centroid by centroid.
    uint32_t code = UINT32_MAX;
    float expected = 0;
    for (const TableHit& hit : hits.back()) {
      if (hit.code != code) expected = group.met(code = hit.code);
      met[hit.token][hit.entry] += expected;
    }
  }
  const std::vector<uint8_t> least = entriesMeeting(met, visits, floors);
  for (size_t g = 0; g < groups_.size(); ++g) {
    Probes& probes = groups_[g].probes;
    for (const TableHit& hit : hits[g]) {
      if (hit.entry < least[hit.token]) continue;
      const auto unmet = uint8_t((least[hit.token] - 1) * SearchTuning::unmetPart);
      probes[hit.token].push_back({hit.code, uint8_t(hit.entry - unmet)});
    }
    for (auto& token : probes) {
      std::sort(token.begin(), token.end(),
                [](const Probe& a, const Probe& b) { return a.gain != b.gain ? a.gain > b.gain : a.code < b.code; });
    }
  }
}

const Probes& NearestCentroids::probesOf(const CodedSegment& coded) const {
  return std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) { return one.table == coded.table; })->probes;
}

/// Entries below which none is worth collecting, u8 [tokensPadded]: an estimate from some of the centroids, with room for
/// its error.
std::vector<uint8_t> NearestCentroids::estimateLeast(const ShortlistSearch& search, float visits) const {
  const uint32_t tokens = search.tokens;
  constexpr uint32_t every = SearchTuning::sampledEvery;
  const uint32_t stride = groups_.front().table->residual.tokensPadded;
  Visits met(tokens);
  // All that graphs have found are collected.
  for (const Group& group : groups_) {
    for (uint32_t k = 0; k < group.centroids() && search.onDemand == nullptr; k += every) {
      const uint8_t* row = group.table->residual.entries + size_t(k) * stride;
      const float expected = group.met(k) * float(every);
      for (uint32_t i = 0; i < tokens; ++i) met[i][row[i]] += expected;
    }
  }
  // An entry of 0 says nothing. Padding tokens keep 0, which collects nothing.
  std::vector<uint8_t> floors(stride, 0);
  std::fill_n(floors.begin(), tokens, uint8_t(1));
  return entriesMeeting(met, visits * std::sqrt(float(every)), floors);
}

/// Every entry of the group that is no less than its token's, centroid by centroid.
std::vector<TableHit> NearestCentroids::hitsOf(const ShortlistSearch& search, const Group& group,
                                               const std::vector<uint8_t>& least) const {
  /// Centroids whose entries one thread looks through at a time.
  constexpr uint32_t taskCentroids = 16384;
  const ResidualTable& table = group.table->residual;
  if (search.onDemand != nullptr) {
    std::vector<TableHit> hits;
    for (const uint32_t code : group.table->near) {
      const uint8_t* row = table.entries + size_t(code) * table.tokensPadded;
      for (uint32_t i = 0; i < search.tokens; ++i) {
        if (row[i] > 0) hits.push_back({code, uint16_t(i), row[i]});
      }
    }
    return hits;
  }
  std::vector<std::vector<TableHit>> parts((group.centroids() + taskCentroids - 1) / taskCentroids);
  search.pool.parallelFor(parts.size(), [&](size_t p) {
    const auto first = uint32_t(p) * taskCentroids;
    search.loops.collectHits(table.entries + size_t(first) * table.tokensPadded,
                             std::min(taskCentroids, group.centroids() - first), table.tokensPadded, least.data(), parts[p]);
    for (TableHit& hit : parts[p]) hit.code += first;
  });
  std::vector<TableHit> hits = std::move(parts.front());
  for (size_t p = 1; p < parts.size(); ++p) hits.insert(hits.end(), parts[p].begin(), parts[p].end());
  return hits;
}

}  // namespace maxsimd
