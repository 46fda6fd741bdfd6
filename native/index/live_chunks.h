// Which chunks of a segment a generation sees. The answer is kept between searches, so that a search after a commit
// pays for the changes only.
#pragma once

#include "runtime/bitmap.h"
#include "store/segment.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace maxsimd {

struct LiveChunks {
  Bitmap chunks;
  uint32_t count = 0;
  /// Records of these chunks.
  uint32_t documents = 0;
  /// Token vectors of these chunks.
  uint64_t rows = 0;
};

class LiveTracker {
 public:
  explicit LiveTracker(std::shared_ptr<const Segment> segment) : segment_(std::move(segment)) {}

  /// Notes that a record's lifespan changed at a generation. Generations never decrease.
  void note(uint64_t generation, uint32_t record);
  /// Forgets everything: lifespans were loaded that include all changes up to `generation`.
  void reset(uint64_t generation);
  /// The number of resets.
  uint64_t epoch() const;

  /// The live chunks among the first `records` records at `generation`. All changes up to it have been noted. `epoch`
  /// is that of the moment when the records were counted: lifespans loaded later may cover more records.
  std::shared_ptr<const LiveChunks> at(uint64_t generation, uint32_t records, uint64_t epoch);

 private:
  struct Change {
    uint64_t generation;
    uint32_t record;
  };

  LiveChunks scan(uint64_t generation, uint32_t records) const;
  void bring(LiveChunks& live, uint32_t record, uint64_t generation) const;

  const std::shared_ptr<const Segment> segment_;
  mutable std::mutex mutex_;
  uint64_t epoch_ = 0;
  /// Valid for the generations [knownFrom_, knownTo_].
  std::shared_ptr<const LiveChunks> known_;
  uint64_t knownFrom_ = 0;
  uint64_t knownTo_ = 0;
  /// Every change after generation `completeFrom_`, ascending. `known_` includes the earlier ones.
  std::vector<Change> changes_;
  uint64_t completeFrom_ = 0;
};

}  // namespace maxsimd
