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
  std::vector<Candidate> tied;
  for (const uint32_t place : places) {
    if (scores[place] == least) tied.push_back(candidates[place]);
  }
  const std::vector<Age> ages = agesOf(tied);
  std::vector<Age> oldest = ages;
  const auto youngest = oldest.begin() + long(tied.size() - (places.size() - count) - 1);
  std::nth_element(oldest.begin(), youngest, oldest.end());
  size_t next = 0;
  std::erase_if(places, [&](uint32_t place) { return scores[place] == least && ages[next++] > *youngest; });
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
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.age < b.age;
  });
  return ranked;
}

}  // namespace maxsimd
