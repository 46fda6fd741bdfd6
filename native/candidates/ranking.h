// Finds the best chunks by score. Among equal scores the older chunk comes first.
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
  /// Position among the candidates.
  uint32_t position;
  Candidate candidate;
};

/// Keeps the `count` items with the highest scores, in their order. If several items tie for the last place, the oldest
/// of them stay. Ages lie far apart in memory, so they are read only for these items.
template <typename Item, typename Score>
std::vector<Item> bestOf(std::vector<Item> items, size_t count, Score Item::* score, const AgesOf& agesOf) {
  if (items.size() <= count) return items;
  std::vector<Score> scores;
  for (const Item& item : items) scores.push_back(item.*score);
  std::nth_element(scores.begin(), scores.begin() + long(count - 1), scores.end(), std::greater<>());
  const Score least = scores[count - 1];
  std::erase_if(items, [&](const Item& item) { return item.*score < least; });
  if (items.size() == count) return items;
  std::vector<Candidate> tied;
  for (const Item& item : items) {
    if (item.*score == least) tied.push_back(item.candidate);
  }
  const std::vector<Age> ages = agesOf(tied);
  std::vector<size_t> oldest(tied.size());
  std::iota(oldest.begin(), oldest.end(), size_t(0));
  std::stable_sort(oldest.begin(), oldest.end(), [&](size_t a, size_t b) { return ages[a] < ages[b]; });
  std::vector<bool> stays(tied.size());
  for (size_t i = 0; i < count - (items.size() - tied.size()); ++i) stays[oldest[i]] = true;
  size_t place = 0;
  std::erase_if(items, [&](const Item& item) { return item.*score == least && !stays[place++]; });
  return items;
}

/// Reads the ages of the chunks, and sorts them best first.
inline std::vector<Ranked> inOrder(std::vector<Ranked> ranked, const AgesOf& agesOf) {
  std::vector<Candidate> candidates;
  for (const Ranked& one : ranked) candidates.push_back(one.candidate);
  const std::vector<Age> ages = agesOf(candidates);
  for (size_t i = 0; i < ages.size(); ++i) ranked[i].age = ages[i];
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.age < b.age;
  });
  return ranked;
}

/// Returns the `count` best candidates, best first, or all if there are fewer. scores[i] belongs to candidates[i].
inline std::vector<Ranked> bestByScore(std::span<const float> scores, std::span<const Candidate> candidates,
                                       size_t count, const AgesOf& agesOf) {
  std::vector<Ranked> ranked;
  for (uint32_t i = 0; i < scores.size(); ++i) ranked.push_back({scores[i], {}, i, candidates[i]});
  return inOrder(bestOf(std::move(ranked), count, &Ranked::score, agesOf), agesOf);
}

}  // namespace maxsimd
