#include "candidates/shortlist.h"

#include "candidates/ranking.h"

namespace maxsimd {

void BestOfParts::add(size_t part, const CodedSegment& coded, uint32_t first, std::span<const uint32_t> sums) {
  const uint32_t known = least_.load(std::memory_order_relaxed);
  const Bitmap& selected = coded.selected->chunks;
  std::vector<uint32_t> counts(counts_.size(), 0);
  std::vector<Shortlisted>& best = parts_[part];
  for (uint32_t c = 0; c < sums.size(); ++c) {
    if (sums[c] < known || !selected.test(first + c)) continue;
    best.push_back({sums[c], {coded.selection, first + c}});
    ++counts[sums[c] >> sumsPerCountBits];
  }
  const uint32_t least = count(counts);
  std::erase_if(best, [least](const Shortlisted& shortlisted) { return shortlisted.sum < least; });
}

uint32_t BestOfParts::count(std::span<const uint32_t> counts) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  size_t found = 0;
  for (size_t i = counts_.size(); i-- > 1 && found < wanted_;) {
    found += counts_[i];
    if (found >= wanted_) least_.store(uint32_t(i) << sumsPerCountBits, std::memory_order_relaxed);
  }
  return least_.load(std::memory_order_relaxed);
}

std::vector<Shortlisted> BestOfParts::best(const AgesOf& agesOf) const {
  std::vector<Shortlisted> all;
  for (const auto& part : parts_) all.insert(all.end(), part.begin(), part.end());
  return bestOf(std::move(all), wanted_, agesOf);
}

std::vector<Shortlisted> bestOf(std::vector<Shortlisted> shortlist, size_t count, const AgesOf& agesOf) {
  std::vector<uint32_t> sums;
  std::vector<Candidate> candidates;
  for (const auto& [sum, candidate] : shortlist) {
    sums.push_back(sum);
    candidates.push_back(candidate);
  }
  std::vector<Shortlisted> best;
  for (const uint32_t place : bestPlaces<uint32_t>(sums, count, candidates, agesOf)) best.push_back(shortlist[place]);
  return best;
}

}  // namespace maxsimd
