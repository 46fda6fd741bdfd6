// The best by score; the older first where scores are equal.
#pragma once

#include "candidates/shortlist.h"
#include "index/age.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace maxsimd {

struct Ranked {
  float score;
  Age age;
  /// Among the candidates.
  uint32_t position;
};

/// The `count` best of all, best first, or all of them if they are fewer; `scores` and `candidates` are [all]. Only ages that
/// may decide are asked for.
inline std::vector<Ranked> bestByScore(std::span<const float> scores, std::span<const Candidate> candidates, size_t count,
                                       const AgesOf& agesOf) {
  float least = -std::numeric_limits<float>::infinity();
  if (scores.size() > count) {
    std::vector<float> copy(scores.begin(), scores.end());
    std::nth_element(copy.begin(), copy.begin() + long(count - 1), copy.end(), std::greater<float>());
    least = copy[count - 1];
  }
  std::vector<Ranked> ranked;
  std::vector<Candidate> best;
  for (uint32_t i = 0; i < scores.size(); ++i) {
    if (scores[i] < least) continue;
    ranked.push_back({scores[i], {}, i});
    best.push_back(candidates[i]);
  }
  const std::vector<Age> ages = agesOf(best);
  for (size_t i = 0; i < ranked.size(); ++i) ranked[i].age = ages[i];
  const size_t kept = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + long(kept), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.age < b.age;
  });
  ranked.resize(kept);
  return ranked;
}

}  // namespace maxsimd
