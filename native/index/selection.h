// The chunks that a search may find: live ones whose documents match its filter.
#pragma once

#include "index/condition.h"
#include "index/index.h"
#include "index/live_chunks.h"
#include "runtime/deadline.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace maxsimd {

/// Documents by their metadata.
struct MetadataFilter {
  /// Present = all must match.
  std::optional<std::vector<Term>> terms;
  /// Present = it must be met, too.
  std::optional<Condition> where;
};

/// The live matching chunks of one segment.
struct Selection {
  SegmentSnapshot snapshot;
  std::shared_ptr<const LiveChunks> chunks;
};

/// Chunks of matching records with born <= generation < died, segment by segment.
std::vector<Selection> selectLive(const std::vector<SegmentSnapshot>& snapshots, uint64_t generation,
                                  const MetadataFilter& filter, const Deadline& deadline);

/// Calls `use` with each matching record of a segment, ascending. A damaged one may be another document's, so it throws
/// instead of naming it.
void forEachRecord(const Selection& selection, const std::function<void(uint32_t)>& use);

/// Version ids of matching records with born <= generation < died, ascending.
std::vector<uint64_t> matchingVersions(const Index& index, uint64_t generation, const MetadataFilter& filter,
                                       const Deadline& deadline);

/// Token vectors of the live matching chunks.
uint64_t matchingTokenVectors(const Index& index, uint64_t generation, const MetadataFilter& filter,
                              const Deadline& deadline);

}  // namespace maxsimd
