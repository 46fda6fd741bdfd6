// The best of several parts, against sorting all of them.
#include "candidates/shortlist.h"
#include "test/sample.h"

#include <algorithm>
#include <numeric>

namespace maxsimd::test {
namespace {

const Case bounded("shortlist", "the best and oldest of all parts are found, whatever order they end in",
                   [](Random& random) {
  for (int round = 0; round < 200; ++round) {
    const uint32_t tokens = between(random, 1, 40), most = tokens * entryMax;
    const size_t count = between(random, 1, 60);
    std::vector<std::vector<Shortlisted>> parts(between(random, 1, 6));
    std::vector<Shortlisted> all;
    // Ages have nothing to do with the order of the parts, nor with that of the chunks.
    const uint64_t mixing = random() | 1;
    const AgeOf ageOf = [mixing](const Candidate& candidate) {
      const uint32_t number = candidate.selection * 1000 + candidate.chunk;
      return Age{number * mixing % 7, number};
    };
    for (uint32_t p = 0; p < parts.size(); ++p) {
      for (uint32_t chunk = 0, chunks = between(random, 0, 40); chunk < chunks; ++chunk) {
        // Few different sums: ties.
        parts[p].push_back({random() % 2 == 0 ? most / 2 : uint32_t(random() % (most + 1)), {p, chunk}});
        all.push_back(parts[p].back());
      }
    }
    std::vector<Shortlisted> expected = all;
    std::sort(expected.begin(), expected.end(), [&](const auto& a, const auto& b) {
      return a.sum != b.sum ? a.sum > b.sum : ageOf(a.candidate) < ageOf(b.candidate);
    });
    if (expected.size() > count) expected.resize(count);
    std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return std::pair(a.candidate.selection, a.candidate.chunk) < std::pair(b.candidate.selection, b.candidate.chunk);
    });
    const auto same = [&](const std::vector<Shortlisted>& found) {
      return std::equal(found.begin(), found.end(), expected.begin(), expected.end(), [](const auto& a, const auto& b) {
        return a.sum == b.sum && a.candidate.selection == b.candidate.selection && a.candidate.chunk == b.candidate.chunk;
      });
    };
    CHECK(same(bestOf(parts, tokens, count, ageOf)));

    // As searches do it: parts in any order, each leaving out what the bound rules out by then.
    SumBound bound(tokens, count);
    std::vector<size_t> order(parts.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::shuffle(order.begin(), order.end(), random);
    uint32_t last = 0;
    for (const size_t p : order) {
      SumCounts counts(sumCountsFor(tokens), 0);
      for (const Shortlisted& shortlisted : parts[p]) ++counts[shortlisted.sum >> sumsPerCountBits];
      const uint32_t least = bound.add(counts);
      CHECK(least >= last);
      last = least;
      std::erase_if(parts[p], [=](const Shortlisted& shortlisted) { return shortlisted.sum < least; });
    }
    CHECK(same(bestOf(parts, tokens, count, ageOf)));
  }
});

}  // namespace
}  // namespace maxsimd::test
