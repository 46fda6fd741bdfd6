#include "candidates/ranking.h"
#include "test/check.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace maxsimd::test {
namespace {

const Case bestByScoreIsASort("search", "the best by score are those of a sort by score, then age", [](Random& random) {
  for (int round = 0; round < rounds(200); ++round) {
    const uint32_t all = between(random, 0, 300);
    // Few different scores, so that many tie, some of them with the last one that is kept.
    const uint32_t different = between(random, 1, 20);
    std::vector<float> scores;
    std::vector<Candidate> candidates;
    std::vector<Age> ages;
    for (uint32_t i = 0; i < all; ++i) {
      scores.push_back(float(between(random, 0, different)) - float(different) / 2);
      candidates.push_back({0, i});
      ages.push_back({between(random, 1, all), between(random, 0, 1)});
    }
    std::vector<std::tuple<float, Age, uint32_t>> sorted;
    for (uint32_t i = 0; i < all; ++i) sorted.emplace_back(-scores[i], ages[i], i);
    std::sort(sorted.begin(), sorted.end());
    const uint32_t count = between(random, 1, 320);
    std::set<uint32_t> asked;
    const AgesOf agesOf = [&](std::span<const Candidate> of) {
      std::vector<Age> found;
      for (const Candidate& candidate : of) {
        asked.insert(candidate.chunk);
        found.push_back(ages[candidate.chunk]);
      }
      return found;
    };
    const std::vector<Ranked> best = bestByScore(scores, candidates, count, agesOf);
    CHECK(best.size() == std::min(count, all));
    for (size_t i = 0; i < best.size(); ++i) {
      const auto& [score, age, position] = sorted[i];
      CHECK(best[i].score == -score && best[i].age == age && best[i].position == position);
    }
    for (uint32_t i = 0; i < all; ++i) CHECK(asked.contains(i) == (best.empty() || scores[i] >= best.back().score));
  }
});

}  // namespace
}  // namespace maxsimd::test
