#include "index/live_chunks.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// After more changes than this between two searches, the lifespans are read anew.
constexpr size_t changesMax = 1 << 16;

}  // namespace

void LiveTracker::note(uint64_t generation, uint32_t record) {
  const std::lock_guard lock(mutex_);
  if (changes_.size() >= changesMax) {
    changes_.clear();
    known_ = nullptr;
    completeFrom_ = generation;
  }
  if (generation > completeFrom_) changes_.push_back({generation, record});
}

void LiveTracker::reset(uint64_t generation) {
  const std::lock_guard lock(mutex_);
  ++epoch_;
  known_ = nullptr;
  // Do not remember what an older search computes: a later search would miss the changes in between.
  completeFrom_ = std::max(completeFrom_, generation);
}

uint64_t LiveTracker::epoch() const {
  const std::lock_guard lock(mutex_);
  return epoch_;
}

std::shared_ptr<const LiveChunks> LiveTracker::at(uint64_t generation, uint32_t records, uint64_t epoch) {
  std::unique_lock lock(mutex_);
  const auto after = [](uint64_t g, const Change& change) { return g < change.generation; };
  if (epoch == epoch_ && known_ != nullptr && generation >= knownFrom_) {
    const auto first = std::upper_bound(changes_.begin(), changes_.end(), knownTo_, after);
    const auto last = std::upper_bound(first, changes_.end(), generation, after);
    if (first == last) {
      knownTo_ = std::max(knownTo_, generation);
      return known_;
    }
    auto live = std::make_shared<LiveChunks>(*known_);
    for (auto change = first; change != last; ++change) bring(*live, change->record, generation);
    changes_.erase(changes_.begin(), last);
    completeFrom_ = generation;
    known_ = live;
    knownFrom_ = knownTo_ = generation;
    return live;
  }
  // The search began before the last known generation, or nothing is known yet.
  lock.unlock();
  auto live = std::make_shared<const LiveChunks>(scan(generation, records));
  lock.lock();
  if (epoch == epoch_ && generation >= completeFrom_ && (known_ == nullptr || generation > knownTo_)) {
    changes_.erase(changes_.begin(), std::upper_bound(changes_.begin(), changes_.end(), generation, after));
    completeFrom_ = generation;
    known_ = live;
    knownFrom_ = knownTo_ = generation;
  }
  return live;
}

LiveChunks LiveTracker::scan(uint64_t generation, uint32_t records) const {
  LiveChunks live;
  if (records == 0) return live;
  const RecordEntry& last = segment_->record(records - 1);
  live.chunks.resize(last.firstChunk + last.chunks);
  for (uint32_t record = 0; record < records; ++record) bring(live, record, generation);
  return live;
}

/// Marks the record's chunks as live or not, as `generation` sees them.
void LiveTracker::bring(LiveChunks& live, uint32_t record, uint64_t generation) const {
  const RecordEntry& entry = segment_->record(record);
  const bool visible = segment_->lifespan(record).visibleAt(generation);
  const uint32_t end = entry.firstChunk + entry.chunks;
  if (live.chunks.size() < end) live.chunks.resize(end);
  if (live.chunks.test(entry.firstChunk) == visible) return;
  for (uint32_t chunk = entry.firstChunk; chunk < end; ++chunk) {
    if (visible) live.chunks.set(chunk);
    else live.chunks.reset(chunk);
  }
  live.documents = visible ? live.documents + 1 : live.documents - 1;
  live.count = visible ? live.count + entry.chunks : live.count - entry.chunks;
  live.rows = visible ? live.rows + entry.rows : live.rows - entry.rows;
}

}  // namespace maxsimd
