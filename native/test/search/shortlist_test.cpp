// Compares the best of several parts, and of blocks, with a sort of all.
#include "candidates/shortlist.h"
#include "test/sample.h"

#include <algorithm>
#include <numeric>

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
    if (expected.size() > count) {
      size_t withTied = count;
      while (withTied < expected.size() && expected[withTied].sum == expected[count - 1].sum) ++withTied;
      expected.resize(withTied <= count + count / 4 ? withTied : count);
    }
    std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return std::pair(a.candidate.selection, a.candidate.chunk) < std::pair(b.candidate.selection, b.candidate.chunk);
    });
    const auto same = [&](const std::vector<Shortlisted>& found) {
      return std::equal(found.begin(), found.end(), expected.begin(), expected.end(), [](const auto& a, const auto& b) {
        return a.sum == b.sum && a.candidate.selection == b.candidate.selection &&
               a.candidate.chunk == b.candidate.chunk;
      });
    };
    CHECK(same(bestOf(parts, tokens, count, agesOf)));

    // Add parts in any order, as searches do. Each leaves out what the bound excludes by then.
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
    CHECK(same(bestOf(parts, tokens, count, agesOf)));
  }
});

const Case ofBlocks("shortlist", "the best of blocks are found, wherever in them they lie", [](Random& random) {
  for (int round = 0; round < 100; ++round) {
    const uint32_t tokens = between(random, 1, 40), most = tokens * entryMax, chunks = between(random, 1, 20'000);
    const uint32_t blockChunks = 64 * between(random, 1, 120);
    const size_t count = between(random, 1, 600);
    // In some blocks the best lie in words that a sample skips, in others only there.
    const uint32_t bestWords = between(random, 0, 2);
    Bitmap selected(chunks);
    std::vector<uint32_t> sums((chunks + 63) / 64 * 64, 0);
    std::vector<Shortlisted> expected;
    for (uint32_t c = 0; c < chunks; ++c) {
      const bool seen = c % blockChunks / 64 % 16 == 0, low = bestWords == 1 ? seen : bestWords == 2 && !seen;
      sums[c] = uint32_t(random() % (low ? most / 8 + 1 : most + 1));
      if (random() % 4 == 0) continue;
      selected.set(c);
      if (sums[c] > 0) expected.push_back({sums[c], {3, c}});
    }
    SumBound bound(tokens, count);
    std::vector<std::vector<Shortlisted>> parts;
    for (uint32_t first = 0; first < chunks; first += blockChunks) {
      const std::span block = std::span(sums).subspan(first).first(std::min<size_t>(blockChunks, sums.size() - first));
      parts.push_back(bestOfBlock({block, selected, first, 3}, bound, baselineCodeLoops));
    }
    const AgesOf agesOf = [](std::span<const Candidate> candidates) {
      std::vector<Age> ages;
      for (const Candidate& candidate : candidates) ages.push_back({candidate.chunk, 0});
      return ages;
    };
    const std::vector<Shortlisted> found = bestOf(parts, tokens, count, agesOf);
    const std::vector<Shortlisted> best = bestOf({expected}, tokens, count, agesOf);
    CHECK(std::equal(found.begin(), found.end(), best.begin(), best.end(), [](const auto& a, const auto& b) {
      return a.sum == b.sum && a.candidate.chunk == b.candidate.chunk;
    }));
  }
});

}  // namespace
}  // namespace maxsimd::test
