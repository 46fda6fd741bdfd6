#include "candidates/shortlist.h"

#include <algorithm>
#include <optional>

namespace maxsimd {

uint32_t SumBound::add(std::span<const uint32_t> counts) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  size_t found = 0;
  for (size_t i = counts_.size(); i-- > 0;) {
    found += counts_[i];
    if (found >= count_) return uint32_t(i) << sumsPerCountBits;
  }
  return 0;
}

std::vector<Shortlisted> bestOf(const std::vector<std::vector<Shortlisted>>& parts, uint32_t tokens, size_t count,
                             const AgeOf& ageOf) {
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
  // The youngest of those with the least sum that is among the best, if not all of them are.
  std::optional<Age> youngest;
  if (better + having[least] > count) {
    std::vector<Age> ages;
    for (const auto& part : parts) {
      for (const Shortlisted& shortlisted : part) {
        if (shortlisted.sum == least) ages.push_back(ageOf(shortlisted.candidate));
      }
    }
    const auto last = ages.begin() + long(count - better - 1);
    std::nth_element(ages.begin(), last, ages.end());
    youngest = *last;
  }
  std::vector<Shortlisted> best;
  best.reserve(std::min(all, count));
  for (const auto& part : parts) {
    for (const Shortlisted& shortlisted : part) {
      if (shortlisted.sum < least) continue;
      if (shortlisted.sum == least && youngest && ageOf(shortlisted.candidate) > *youngest) continue;
      best.push_back(shortlisted);
    }
  }
  return best;
}

}  // namespace maxsimd
