// The segments of one index and who may see what in them.
//
// Writers (append, seal, copy) lock one segment; publication runs on one thread; a search takes a snapshot
// of the list of segments and reads without locks. A segment taken out of the list lives on while anyone
// still reads it.
#pragma once

#include "codes/codebook.h"
#include "runtime/deadline.h"
#include "codes/codes.h"
#include "index/field_values.h"
#include "index/live_chunks.h"
#include "kernels/contract.h"
#include "store/segment.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace maxsimd {

class Residents;

struct IndexOptions {
  uint32_t dim;
  /// Token vectors that a search of 32 query tokens may scan exactly.
  uint64_t exactTokenVectorsMax;
};

/// A segment as one search sees it: records and chunks below the counts, readable through the mapping.
struct SegmentSnapshot {
  std::shared_ptr<const Segment> segment;
  std::shared_ptr<LiveTracker> live;
  /// Null until they are built.
  std::shared_ptr<const ChunkCodes> codes;
  std::shared_ptr<FieldValues> values;
  std::shared_ptr<const Mapping> mapping;
  uint32_t records;
  /// The epoch of `live` when the records were counted.
  uint64_t epoch;
};

struct SegmentInfo {
  uint64_t id;
  SegmentCounts counts;
  /// Bytes of codes and postings; a codebook that segments share is counted with the first of them.
  uint64_t derivedBytes;
  /// 0 = no codes yet.
  uint32_t centroids;
  /// Name of the file of their codebook, in the segment's folder; empty if there are none.
  std::string codebook;
  /// They were made with an older codebook than the index has now: to be built again.
  bool codesOutdated;
};

class Index {
 public:
  /// `residents`: whose copies in device memory searches use; null = none.
  Index(const Kernel& kernel, IndexOptions options, Residents* residents = nullptr);

  const Kernel& kernel() const { return kernel_; }
  Residents* residents() const { return residents_; }
  const IndexOptions& options() const { return options_; }

  void createSegment(uint64_t id, const std::string& path);
  SegmentInfo openSegment(uint64_t id, const std::string& path, uint32_t recordsReferenced, bool sealed,
                          const PartialCopy* partial = nullptr);
  /// Segment::addParts.
  void addParts(uint64_t id, std::span<const uint8_t> bits) { find(id)->addParts(bits); }
  uint32_t append(uint64_t id, const RecordParts& parts);
  void sync(uint64_t id);
  SegmentInfo seal(uint64_t id);
  std::vector<uint32_t> copyRecords(uint64_t from, std::span<const uint32_t> records, uint64_t to,
                                    const Deadline& deadline);
  /// Segment::read.
  std::vector<uint8_t> readRecord(uint64_t id, uint32_t record) const;
  /// Segment::verify.
  Segment::Verified verifyRecord(uint64_t id, uint32_t record) { return find(id)->verify(record); }
  struct CodesBuilt {
    uint32_t chunks;
    uint64_t bytes;
    uint32_t centroids;
    /// A new codebook was fitted: codes of other segments are outdated now.
    bool fitted;
  };
  /// Codes of a sealed segment with chunks. The index's codebook is fitted anew when it no longer stands for the index:
  /// codes of other segments are outdated then, good for searches though dearer.
  CodesBuilt buildCodes(uint64_t id, const Deadline& deadline);
  /// Builds the postings of a sealed segment from its records: filters look its terms up again.
  void buildPostings(uint64_t id, const Deadline& deadline);
  void dropSegment(uint64_t id);
  /// Codes that cannot be read are not used any more.
  void dropCodes(uint64_t id, const std::shared_ptr<const ChunkCodes>& codes);

  struct LifespanChange {
    uint64_t segmentId;
    uint32_t record;
  };
  struct LifespanLoad {
    LifespanChange at;
    uint64_t versionId;
    uint64_t born;
    /// generationNever = alive.
    uint64_t died;
  };
  /// All or nothing: every entry is checked before the first is applied.
  void loadLifespans(std::span<const LifespanLoad> lifespans);
  /// Record `first + i` of `to` gets the lifespan of `records[i]` of `from`, of which it is a copy.
  void copyLifespans(uint64_t from, std::span<const uint32_t> records, uint64_t to, uint32_t first);
  /// Records that a reader at `generation` or later may see, ascending.
  struct SeenRecords {
    std::vector<uint32_t> records;
    std::vector<double> versionIds;
  };
  SeenRecords recordsSeenSince(uint64_t id, uint64_t generation) const;
  /// Those of them whose values of one of the fields are not known; `addValues` takes their metadata as compact JSON.
  SeenRecords recordsWithoutValues(uint64_t id, uint64_t generation, std::span<const std::string> fields) const;
  void addValues(uint64_t id, std::span<const std::string> fields, std::span<const uint32_t> records,
                 std::span<const std::string> objects);
  void publish(uint64_t generation, std::span<const LifespanChange> born, std::span<const LifespanChange> died);

  /// Ascending by segment id.
  std::vector<SegmentSnapshot> snapshot() const;
  std::vector<SegmentInfo> segments() const;

 private:
  struct Entry {
    std::shared_ptr<Segment> segment;
    std::shared_ptr<LiveTracker> live;
    std::shared_ptr<const ChunkCodes> codes;
    std::shared_ptr<FieldValues> values;
  };

  std::shared_ptr<Segment> find(uint64_t id) const { return findEntry(id).segment; }
  Entry findEntry(uint64_t id) const;
  /// Claims an id before its file is touched, so that two creations of it cannot both proceed.
  void claim(uint64_t id);
  void fill(uint64_t id, Entry entry);
  static Entry entryOf(std::shared_ptr<Segment> segment);
  static SegmentInfo describe(uint64_t id, const Entry& entry, const Codebook* newest);
  const Entry& recordEntry(const LifespanChange& change) const;

  /// The codebook with this hash that the index has already, or what `load` gives.
  std::shared_ptr<const Codebook> intern(uint64_t hash, const ChunkCodes::Load& load);
  std::shared_ptr<const Codebook> newestCodebook() const;
  std::shared_ptr<const Codebook> codebookFor(const std::shared_ptr<const Segment>& segment, const Deadline& deadline);

  const Kernel& kernel_;
  const IndexOptions options_;
  Residents* const residents_;
  mutable std::mutex mutex_;
  /// An entry without a segment is being created or opened.
  std::map<uint64_t, Entry> entries_;
  uint64_t published_ = 0;
  std::map<uint64_t, std::weak_ptr<const Codebook>> codebooks_;
};

}  // namespace maxsimd
