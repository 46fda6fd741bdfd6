#include "index/selection.h"

#include "files/error.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// Records of one segment, ascending.
std::vector<uint32_t> matchingRecords(const SegmentSnapshot& snapshot, uint64_t generation,
                                      const MetadataFilter& filter, const Checkpoint& checkpoint) {
  std::vector<uint32_t> matching;
  if (filter.terms) matching = snapshot.segment->recordsMatching(*filter.terms, snapshot.records, checkpoint);
  if (!filter.where) return matching;
  const Bitmap meeting = recordsMeeting(*filter.where, snapshot, generation, checkpoint);
  if (filter.terms) std::erase_if(matching, [&meeting](uint32_t record) { return !meeting.test(record); });
  else meeting.forEach(0, meeting.size(), [&matching](uint32_t record) { matching.push_back(record); });
  return matching;
}

/// The live chunks that the filter leaves.
std::shared_ptr<const LiveChunks> filtered(const Segment& segment, const LiveChunks& live,
                                           const std::vector<uint32_t>& records) {
  auto left = std::make_shared<LiveChunks>();
  left->chunks.resize(live.chunks.size());
  for (const uint32_t number : records) {
    const RecordEntry& record = segment.record(number);
    if (!live.chunks.test(record.firstChunk)) continue;
    for (uint32_t c = 0; c < record.chunks; ++c) left->chunks.set(record.firstChunk + c);
    left->documents += 1;
    left->count += record.chunks;
    left->rows += record.rows;
  }
  return left;
}

}  // namespace

std::vector<Selection> selectLive(const std::vector<SegmentSnapshot>& snapshots, uint64_t generation,
                                  const MetadataFilter& filter, const Deadline& deadline) {
  std::vector<Selection> selections;
  const Checkpoint checkpoint = [&deadline] { deadline.check(); };
  for (const SegmentSnapshot& snapshot : snapshots) {
    checkpoint();
    auto live = snapshot.live->at(generation, snapshot.records, snapshot.epoch);
    if ((filter.terms || filter.where) && live->count > 0) {
      live = filtered(*snapshot.segment, *live, matchingRecords(snapshot, generation, filter, checkpoint));
    }
    selections.push_back({snapshot, std::move(live)});
  }
  return selections;
}

void forEachRecord(const Selection& selection, const std::function<void(uint32_t)>& use) {
  const Segment& segment = *selection.snapshot.segment;
  const Bitmap& chunks = selection.chunks->chunks;
  for (uint32_t r = 0; r < selection.snapshot.records; ++r) {
    if (!chunks.test(segment.record(r).firstChunk)) continue;
    if (segment.knownDamaged(r)) throw segment.unread(*selection.snapshot.mapping, r);
    use(r);
  }
}

std::vector<uint64_t> matchingVersions(const Index& index, uint64_t generation, const MetadataFilter& filter,
                                       const Deadline& deadline) {
  std::vector<uint64_t> versionIds;
  for (const Selection& selection : selectLive(index.snapshot(), generation, filter, deadline)) {
    const Segment& segment = *selection.snapshot.segment;
    forEachRecord(selection, [&](uint32_t record) { versionIds.push_back(segment.record(record).versionId); });
  }
  std::sort(versionIds.begin(), versionIds.end());
  return versionIds;
}

uint64_t matchingTokenVectors(const Index& index, uint64_t generation, const MetadataFilter& filter,
                              const Deadline& deadline) {
  uint64_t rows = 0;
  for (const Selection& selection : selectLive(index.snapshot(), generation, filter, deadline)) {
    rows += selection.chunks->rows;
  }
  return rows;
}

}  // namespace maxsimd
