// The best by score; the older first where scores are equal.
#pragma once

#include "candidates/shortlist.h"
#include "index/age.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace maxsimd {

struct Ranked {
  float score;
  Age age;
  /// Among the candidates.
  uint32_t position;
};

/// The places of the `count` best, ascending; where the last ones tie, the oldest of these. All places if they are fewer.
/// Ages lie far apart in memory, so only those that decide are asked for.
template <typename Score>
std::vector<uint32_t> bestPlaces(std::span<const Score> scores, size_t count, std::span<const Candidate> candidates,
                                 const AgesOf& agesOf) {
  std::vector<uint32_t> places(scores.size());
  std::iota(places.begin(), places.end(), 0u);
  if (scores.size() <= count) return places;
  std::vector<Score> sorted(scores.begin(), scores.end());
  std::nth_element(sorted.begin(), sorted.begin() + long(count - 1), sorted.end(), std::greater<>());
  const Score least = sorted[count - 1];
  std::erase_if(places, [&](uint32_t place) { return scores[place] < least; });
  if (places.size() <= count) return places;
  const auto firstTied =
      std::stable_partition(places.begin(), places.end(), [&](uint32_t place) { return scores[place] > least; });
  std::vector<Candidate> tied;
  for (auto place = firstTied; place != places.end(); ++place) tied.push_back(candidates[*place]);
  const std::vector<Age> ages = agesOf(tied);
  std::vector<std::pair<Age, uint32_t>> byAge;
  for (size_t i = 0; i < tied.size(); ++i) byAge.emplace_back(ages[i], firstTied[long(i)]);
  std::sort(byAge.begin(), byAge.end());
  places.erase(firstTied, places.end());
  for (size_t i = 0; places.size() < count; ++i) places.push_back(byAge[i].second);
  std::sort(places.begin(), places.end());
  return places;
}

/// The `count` best of all, best first, or all of them if they are fewer; `scores` and `candidates` are [all].
inline std::vector<Ranked> bestByScore(std::span<const float> scores, std::span<const Candidate> candidates, size_t count,
                                       const AgesOf& agesOf) {
  const std::vector<uint32_t> places = bestPlaces(scores, count, candidates, agesOf);
  std::vector<Candidate> best;
  for (const uint32_t place : places) best.push_back(candidates[place]);
  const std::vector<Age> ages = agesOf(best);
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < places.size(); ++i) ranked.push_back({scores[places[i]], ages[i], places[i]});
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.age < b.age;
  });
  return ranked;
}

}  // namespace maxsimd
