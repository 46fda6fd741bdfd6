#include "candidates/shortlist.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace maxsimd {
namespace {

/// One word of chunks in so many is sampled, and a guess is to leave some more chunks than are wanted.
constexpr uint32_t sampledWords = 16;
constexpr double guessMargin = 1.3;
/// All that tie with the last of the best are kept, up to such a part more than are wanted: to look up their ages, which lie
/// far apart in memory, takes longer than to look at these chunks.
constexpr size_t tiedPart = 4;

/// From which sum on the block is expected to have more chunks than are wanted in all.
uint32_t guessBound(const BlockSums& block, const SumBound& bound) {
  SumCounts counts = bound.emptyCounts();
  for (size_t c = 0; c < block.sums.size(); c += sampledWords * Bitmap::wordBits) {
    for (const uint32_t sum : block.sums.subspan(c, Bitmap::wordBits)) ++counts[sum >> sumsPerCountBits];
  }
  double expected = 0;
  for (size_t i = counts.size(); i-- > 1;) {
    expected += counts[i] * sampledWords;
    if (expected >= double(bound.wanted()) * guessMargin) return uint32_t(i) << sumsPerCountBits;
  }
  return 0;
}

std::vector<Shortlisted> reaching(const BlockSums& block, uint32_t least, const CodeLoops& loops) {
  thread_local std::vector<uint32_t> places;
  places.resize(std::max(places.size(), block.sums.size() + rowLanes));
  std::vector<Shortlisted> shortlist(
      loops.placesReaching(block.sums.data(), uint32_t(block.sums.size()), least, places.data()));
  for (size_t i = 0; i < shortlist.size(); ++i)
    shortlist[i] = {block.sums[places[i]], {block.selection, block.first + places[i]}};
  return shortlist;
}

}  // namespace

std::vector<Shortlisted> bestOfBlock(const BlockSums& block, SumBound& bound, const CodeLoops& loops) {
  for (size_t c = 0; c < block.sums.size(); c += Bitmap::wordBits) {
    for (uint64_t others = ~block.selected.word((block.first + c) / Bitmap::wordBits); others != 0; others &= others - 1)
      block.sums[c + size_t(std::countr_zero(others))] = 0;
  }
  const uint32_t known = std::max(1u, bound.known());
  const uint32_t guess = std::max(known, guessBound(block, bound));
  std::vector<Shortlisted> best = reaching(block, guess, loops);
  // It is a bound only if it leaves as many as are wanted in all.
  if (guess > known && best.size() < bound.wanted()) best = reaching(block, known, loops);
  SumCounts counts = bound.emptyCounts();
  for (const Shortlisted& shortlisted : best) ++counts[shortlisted.sum >> sumsPerCountBits];
  const uint32_t least = bound.add(counts);
  std::erase_if(best, [least](const Shortlisted& shortlisted) { return shortlisted.sum < least; });
  return best;
}

uint32_t SumBound::add(std::span<const uint32_t> counts) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  size_t found = 0;
  for (size_t i = counts_.size(); i-- > 0;) {
    found += counts_[i];
    if (found < wanted_) continue;
    bound_.store(uint32_t(i) << sumsPerCountBits, std::memory_order_relaxed);
    break;
  }
  return known();
}

std::vector<Shortlisted> bestOf(const std::vector<std::vector<Shortlisted>>& parts, uint32_t tokens, size_t count,
                             const AgesOf& agesOf) {
  std::vector<uint32_t> having(size_t(tokens) * entryMax + 1, 0);
  size_t all = 0;
  for (const auto& part : parts) {
    all += part.size();
    for (const Shortlisted& shortlisted : part) ++having[shortlisted.sum];
  }
  uint32_t least = 0;
  size_t better = 0;
  if (all > count) {
    for (least = uint32_t(having.size() - 1); better + having[least] < count; --least) better += having[least];
  }
  // The youngest of those with the least sum that is among the best, if not all of them are; the ages of all with that sum.
  std::optional<Age> youngest;
  std::vector<Age> ages;
  if (better + having[least] > count + count / tiedPart) {
    std::vector<Candidate> lasts;
    for (const auto& part : parts) {
      for (const Shortlisted& shortlisted : part) {
        if (shortlisted.sum == least) lasts.push_back(shortlisted.candidate);
      }
    }
    ages = agesOf(lasts);
    std::vector<Age> sorted = ages;
    const auto last = sorted.begin() + long(count - better - 1);
    std::nth_element(sorted.begin(), last, sorted.end());
    youngest = *last;
  }
  size_t tied = 0;
  std::vector<Shortlisted> best;
  best.reserve(std::min(all, count));
  for (const auto& part : parts) {
    for (const Shortlisted& shortlisted : part) {
      if (shortlisted.sum < least) continue;
      if (shortlisted.sum == least && youngest && ages[tied++] > *youngest) continue;
      best.push_back(shortlisted);
    }
  }
  return best;
}

}  // namespace maxsimd
