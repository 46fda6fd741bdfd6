// Compares the best of several parts with a sort of all.
#include "candidates/shortlist.h"
#include "test/sample.h"

#include <algorithm>

namespace maxsimd::test {
namespace {

const Case bounded("shortlist", "the best and oldest of all parts are found in any order", [](Random& random) {
  for (int round = 0; round < 200; ++round) {
    const uint32_t tokens = between(random, 1, 40), most = tokens * entryMax;
    const size_t count = between(random, 1, 60);
    std::vector<std::vector<Shortlisted>> parts(between(random, 1, 6));
    std::vector<Shortlisted> all;
    // Ages are independent of the order of parts and chunks.
    const uint64_t mixing = random() | 1;
    const auto ageOf = [mixing](const Candidate& candidate) {
      const uint32_t number = candidate.selection * 1000 + candidate.chunk;
      return Age{number * mixing % 7, number};
    };
    const AgesOf agesOf = [ageOf](std::span<const Candidate> candidates) {
      std::vector<Age> ages;
      for (const Candidate& candidate : candidates) ages.push_back(ageOf(candidate));
      return ages;
    };
    for (uint32_t p = 0; p < parts.size(); ++p) {
      for (uint32_t chunk = 0, chunks = between(random, 0, 40); chunk < chunks; ++chunk) {
        // Few different sums, so that many tie.
        parts[p].push_back({random() % 2 == 0 ? most / 2 : uint32_t(random() % (most + 1)), {p, chunk}});
        all.push_back(parts[p].back());
      }
    }
    std::vector<Shortlisted> expected = all;
    std::sort(expected.begin(), expected.end(), [&](const auto& a, const auto& b) {
      return a.sum != b.sum ? a.sum > b.sum : ageOf(a.candidate) < ageOf(b.candidate);
    });
    expected.resize(std::min(expected.size(), count));
    std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return std::pair(a.candidate.selection, a.candidate.chunk) < std::pair(b.candidate.selection, b.candidate.chunk);
    });
    std::vector<Shortlisted> together;
    for (const auto& part : parts) together.insert(together.end(), part.begin(), part.end());
    const std::vector<Shortlisted> found = bestBySum(together, count, agesOf);
    CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return a.sum == b.sum && a.candidate.selection == b.candidate.selection && a.candidate.chunk == b.candidate.chunk;
    }));
  }
});

}  // namespace
}  // namespace maxsimd::test
