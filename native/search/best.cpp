#include "search/best.h"

#include <algorithm>
#include <utility>

namespace maxsimd {
namespace {

/// Keeps the `count` best items. Returns the score below which none can be among them.
template <typename Item>
float keepBest(std::vector<Item>& items, size_t count, const AgesOf& agesOf) {
  items = bestOf(std::move(items), count, &Item::score, agesOf);
  if (items.size() < count) return -std::numeric_limits<float>::infinity();
  return std::ranges::min_element(items, {}, &Item::score)->score;
}

}  // namespace

void BestChunks::add(std::span<const Candidate> candidates, std::span<const float> scores, uint32_t position) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] >= least_) kept_.push_back({scores[i], {}, position + uint32_t(i), candidates[i]});
  }
  if (kept_.size() > 2 * count_) least_ = keepBest(kept_, count_, agesOf_);
}

std::vector<Ranked> BestChunks::take() {
  keepBest(kept_, count_, agesOf_);
  return inOrder(std::exchange(kept_, {}), agesOf_);
}

void BestDocuments::add(std::span<const Candidate> candidates, std::span<const float> scores, uint32_t position) {
  for (size_t i = 0; i < scores.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const uint32_t record = recordOf_(candidate);
    const bool isNext =
        !current_.empty() && current_.front().candidate.selection == candidate.selection && currentRecord_ == record;
    if (!isNext) endDocument();
    currentRecord_ = record;
    addChunk({scores[i], {}, position + uint32_t(i), candidate});
  }
}

/// Chunks of a document come in order, so among equal scores the first is the oldest.
void BestDocuments::addChunk(const Ranked& chunk) {
  const auto place = std::ranges::upper_bound(current_, chunk.score, std::ranges::greater(), &Ranked::score);
  current_.insert(place, chunk);
  if (current_.size() > chunksOfDocumentMost) current_.pop_back();
}

void BestDocuments::endDocument() {
  if (!current_.empty() && current_.front().score >= least_)
    kept_.push_back({current_.front().score, current_.front().candidate, current_});
  current_.clear();
  if (kept_.size() > 2 * count_) least_ = keepBest(kept_, count_, agesOf_);
}

std::vector<Ranked> BestDocuments::take() {
  endDocument();
  keepBest(kept_, count_, agesOf_);
  std::vector<Ranked> heads;
  for (uint32_t d = 0; d < kept_.size(); ++d) heads.push_back({kept_[d].score, {}, d, kept_[d].candidate});
  std::vector<Ranked> ranked;
  for (const Ranked& head : inOrder(std::move(heads), agesOf_)) {
    const std::vector<Ranked> chunks = inOrder(std::move(kept_[head.position].chunks), agesOf_);
    ranked.insert(ranked.end(), chunks.begin(), chunks.end());
  }
  kept_.clear();
  return ranked;
}

}  // namespace maxsimd
