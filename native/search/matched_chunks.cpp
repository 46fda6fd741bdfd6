#include "search/matched_chunks.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// The sum of the bonuses of these spans, in their order.
float bonusOf(uint64_t spans, std::span<const float> bonuses) {
  float sum = 0;
  for (size_t span = 0; span < bonuses.size(); ++span) {
    if (spans >> span & 1) sum += bonuses[span];
  }
  return sum;
}

}  // namespace

MatchedChunks::MatchedChunks(const std::vector<Selection>& selections, const SpanMatch& match,
                             const Deadline& deadline) {
  for (const auto& [selection, number, spans] : spanHits(selections, match.spans, deadline)) {
    const RecordEntry& record = selections[selection].snapshot.segment->record(number);
    const size_t first = chunks_.size();
    for (uint32_t c = 0; c < record.chunks; ++c) chunks_.push_back({selection, record.firstChunk + c});
    documents_.push_back({first, chunks_.size(), spans, bonusOf(spans, match.bonuses)});
  }
  restart();
}

void MatchedChunks::restart() { matched_.assign(chunks_.size(), {}); }

void MatchedChunks::addOthers(std::span<const Candidate> candidates, std::span<const float> scores, uint32_t position,
                              Best& best) {
  size_t added = 0;
  const auto addUntil = [&](size_t end) {
    best.add(candidates.subspan(added, end - added), scores.subspan(added, end - added), position + uint32_t(added));
    added = end;
  };
  auto next = candidates.begin();
  auto chunk = next == candidates.end() ? chunks_.end() : std::lower_bound(chunks_.begin(), chunks_.end(), *next);
  for (; chunk != chunks_.end(); ++chunk) {
    next = std::lower_bound(next, candidates.end(), *chunk);
    if (next == candidates.end()) break;
    if (*next != *chunk) continue;
    const auto place = size_t(next - candidates.begin());
    addUntil(place);
    ++added;
    matched_[size_t(chunk - chunks_.begin())] = {scores[place], position + uint32_t(place), 0, true};
  }
  addUntil(candidates.size());
}

std::vector<Candidate> MatchedChunks::unscored() const {
  std::vector<Candidate> chunks;
  for (size_t c = 0; c < chunks_.size(); ++c) {
    if (!matched_[c].isScored) chunks.push_back(chunks_[c]);
  }
  return chunks;
}

void MatchedChunks::addScores(std::span<const float> scores) {
  size_t taken = 0;
  for (size_t c = 0; taken < scores.size(); ++c) {
    if (!matched_[c].isScored) matched_[c] = {scores[taken++], MatchedChunk::noPosition, 0, true};
  }
}

void MatchedChunks::addAll(Best& best) {
  std::vector<float> scores;
  for (const Document& document : documents_) {
    const auto first = matched_.begin() + long(document.first), end = matched_.begin() + long(document.end);
    // It is the first of equal chunks.
    const auto top = std::max_element(first, end, [](const auto& a, const auto& b) { return a.maxsim < b.maxsim; });
    top->spans = document.spans;
    for (auto chunk = first; chunk != end; ++chunk)
      scores.push_back(chunk == top ? chunk->maxsim + document.bonus : chunk->maxsim);
  }
  best.add(chunks_, scores, 0);
}

const MatchedChunk* MatchedChunks::find(const Candidate& chunk) const {
  const auto found = std::lower_bound(chunks_.begin(), chunks_.end(), chunk);
  if (found == chunks_.end() || *found != chunk) return nullptr;
  return &matched_[size_t(found - chunks_.begin())];
}

}  // namespace maxsimd
