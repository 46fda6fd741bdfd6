#include "search/best.h"
#include "test/check.h"

#include <algorithm>
#include <map>
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

/// Adds scored chunks in parts of random lengths.
void addInParts(Random& random, Best& best, const std::vector<Candidate>& candidates,
                const std::vector<float>& scores) {
  for (size_t done = 0; done < scores.size();) {
    const size_t count = std::min<size_t>(scores.size() - done, between(random, 1, 40));
    best.add(std::span(candidates).subspan(done, count), std::span(scores).subspan(done, count), uint32_t(done));
    done += count;
  }
}

const Case bestOfParts("search", "the best of parts are those of a sort, by chunks and by documents",
                       [](Random& random) {
                         for (int round = 0; round < rounds(300); ++round) {
                           const uint32_t different = between(random, 1, 20);
                           std::vector<float> scores;
                           std::vector<Candidate> candidates;
                           std::vector<Age> ages;
                           std::vector<uint32_t> records;
                           const uint32_t documents = between(random, 0, 80), firstVersion = between(random, 0, 80);
                           for (uint32_t d = 0; d < documents; ++d) {
                             for (uint32_t c = 0, count = between(random, 1, 25); c < count; ++c) {
                               scores.push_back(float(between(random, 0, different)));
                               candidates.push_back({d < documents / 2 ? 0u : 1u, uint32_t(candidates.size())});
                               ages.push_back({(d + firstVersion) % documents, c});
                               // Records have numbers within their segments.
                               records.push_back(d < documents / 2 ? d : d - documents / 2);
                             }
                           }
                           const AgesOf agesOf = [&](std::span<const Candidate> of) {
                             std::vector<Age> found;
                             for (const Candidate& candidate : of) found.push_back(ages[candidate.chunk]);
                             return found;
                           };
                           std::vector<std::tuple<float, Age, uint32_t>> sorted;
                           for (uint32_t i = 0; i < scores.size(); ++i) sorted.emplace_back(-scores[i], ages[i], i);
                           std::sort(sorted.begin(), sorted.end());
                           const size_t count = between(random, 1, 100);

                           BestChunks bestChunks(count, agesOf);
                           addInParts(random, bestChunks, candidates, scores);
                           std::vector<uint32_t> expected;
                           for (size_t i = 0; i < std::min(count, sorted.size()); ++i)
                             expected.push_back(std::get<2>(sorted[i]));
                           const auto positionsOf = [&](const std::vector<Ranked>& ranked) {
                             std::vector<uint32_t> positions;
                             for (const Ranked& one : ranked) {
                               CHECK(one.score == scores[one.position] && one.age == ages[one.position]);
                               CHECK(one.candidate.chunk == one.position);
                               positions.push_back(one.position);
                             }
                             return positions;
                           };
                           CHECK(positionsOf(bestChunks.take()) == expected);

                           BestDocuments bestDocuments(
                               count, agesOf, [&](const Candidate& candidate) { return records[candidate.chunk]; });
                           addInParts(random, bestDocuments, candidates, scores);
                           std::vector<uint64_t> versions;
                           std::map<uint64_t, std::vector<uint32_t>> chunksOf;
                           for (const auto& [score, age, position] : sorted) {
                             std::vector<uint32_t>& chunks = chunksOf[age.versionId];
                             if (chunks.empty()) versions.push_back(age.versionId);
                             if (chunks.size() < chunksOfDocumentMost) chunks.push_back(position);
                           }
                           expected.clear();
                           for (size_t d = 0; d < std::min(count, versions.size()); ++d) {
                             const std::vector<uint32_t>& chunks = chunksOf[versions[d]];
                             expected.insert(expected.end(), chunks.begin(), chunks.end());
                           }
                           CHECK(positionsOf(bestDocuments.take()) == expected);
                         }
                       });

}  // namespace
}  // namespace maxsimd::test
