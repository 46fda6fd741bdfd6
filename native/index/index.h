// The segments of one index and the visibility of their records.
//
// Writers (append, seal, copy) lock one segment. One thread publishes. A search takes a snapshot of the list of
// segments and reads without locks. A segment that was dropped lives on while a search still reads it.
#pragma once

#include "codes/codebook.h"
#include "runtime/deadline.h"
#include "codes/codes.h"
#include "values/field_values.h"
#include "index/live_chunks.h"
#include "kernels/contract.h"
#include "store/segment.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

class Residents;

struct IndexOptions {
  RowShape shape;
  /// How many token vectors a search of 32 query tokens may score exactly without codes.
  uint64_t exactTokenVectorsMax;
  /// Centroids of every codebook that is fitted, for tests; 0 = as many as its token vectors deserve.
  uint32_t centroids = 0;
  /// The tenant whose index it is (files/memory.h); empty for tools.
  std::string owner = {};
};

/// A segment as one search sees it. The mapping covers all records and chunks below the counts.
struct SegmentSnapshot {
  std::shared_ptr<const Segment> segment;
  std::shared_ptr<LiveTracker> live;
  /// Null until they are built.
  std::shared_ptr<const ChunkCodes> codes;
  std::shared_ptr<FieldValues> values;
  std::shared_ptr<const Mapping> mapping;
  uint32_t records;
  /// The epoch of `live` at the time of the snapshot.
  uint64_t epoch;
};

struct SegmentInfo {
  uint64_t id;
  SegmentCounts counts;
  /// Bytes of codes and postings. A codebook that several segments share is counted with the first of them.
  uint64_t derivedBytes;
  /// 0 = no codes yet.
  uint32_t centroids;
  /// File name of their codebook, in the segment's folder; empty = no codes.
  std::string codebook;
  /// The codes use an older codebook than the index's newest: build them again.
  bool codesOutdated;
};

class Index {
 public:
  /// `residents`: copies in device memory that searches use; null = no device.
  Index(const Kernel& kernel, IndexOptions options, Residents* residents = nullptr);

  const Kernel& kernel() const { return kernel_; }
  Residents* residents() const { return residents_; }
  const IndexOptions& options() const { return options_; }

  /// Creates an active segment. Here and below `invalid_argument` if the segment is open already, or is not open.
  void createSegment(uint64_t id, const std::string& path);
  /// Segment::open, with the codes beside it.
  SegmentInfo openSegment(uint64_t id, const std::string& path, uint32_t recordsReferenced, bool sealed,
                          const PartialCopy* partial = nullptr);
  /// Segment::addParts.
  void addParts(uint64_t id, std::span<const uint8_t> bits) { find(id)->addParts(bits); }
  /// Segment::append; the number of the record.
  uint32_t append(uint64_t id, const RecordParts& parts);
  void sync(uint64_t id);
  SegmentInfo seal(uint64_t id);
  /// Appends records of `from` to `to`, as they are, and returns their numbers there. `UnreadRecord` if one is damaged.
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
    /// A new codebook was fitted, so codes of other segments are outdated.
    bool fitted;
  };
  /// Builds codes of a sealed segment with chunks. If the codebook no longer fits the index, a new one is fitted. Codes
  /// of other segments are then outdated: still right to use, though slower. `plain`: a new codebook must be one that
  /// earlier releases can read.
  CodesBuilt buildCodes(uint64_t id, const Deadline& deadline, bool plain = false);
  /// Builds the graph of the newest codebook, if it is one that searches use. Until then, and where there is no memory for
  /// it, searches compare all centroids.
  void buildGraph(const Deadline& deadline);
  /// Builds the postings of a sealed segment from its records.
  void buildPostings(uint64_t id, const Deadline& deadline);
  void dropSegment(uint64_t id);
  /// Stops using codes that cannot be read.
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
  /// All or nothing: every entry is checked before the first is applied. `corrupt` if a record is damaged or holds
  /// another version.
  void loadLifespans(std::span<const LifespanLoad> lifespans);
  /// Gives record `first + i` of `to` the lifespan of `records[i]` of `from`, of which it is a copy.
  void copyLifespans(uint64_t from, std::span<const uint32_t> records, uint64_t to, uint32_t first);
  /// Records that a reader at `generation` or later may see, ascending, with their version ids.
  struct SeenRecords {
    std::vector<uint32_t> records;
    std::vector<double> versionIds;
  };
  SeenRecords recordsSeenSince(uint64_t id, uint64_t generation) const;
  /// The records of these whose values for one of the fields are not known yet. `addValues` takes their
  /// metadata as compact JSON. It throws `no_memory` if there is no room, and the index then has no columns.
  SeenRecords recordsWithoutValues(uint64_t id, uint64_t generation, std::span<const std::string> fields) const;
  void addValues(uint64_t id, std::span<const std::string> fields, std::span<const uint32_t> records,
                 std::span<const std::string> objects);
  /// FieldValues::save.
  FieldValues::Saved saveValues(uint64_t id, std::span<const std::string> fields) const {
    return findEntry(id).values->save(fields);
  }
  /// Copies values of the segment's records from the columns of all other segments that are open now, even if they are
  /// dropped before the copy is made.
  std::function<FieldValues::Saved()> copyOfValues(uint64_t id) const;
  /// FieldValues::drop.
  void dropValues(uint64_t id) const { findEntry(id).values->drop(); }
  /// Makes the records of `born` alive and those of `died` dead from `generation` on, which must be the highest so far.
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
  /// Reserves an id before its file is touched, so that it is not created twice.
  void claim(uint64_t id);
  void fill(uint64_t id, Entry entry);
  Entry entryOf(std::shared_ptr<Segment> segment) const;
  static std::vector<FieldValues::Source> sourcesOf(const Entry& target, const std::vector<Entry>& others);
  static SegmentInfo describe(uint64_t id, const Entry& entry, const Codebook* newest);
  const Entry& recordEntry(const LifespanChange& change) const;

  /// The index's codebook with this hash; if there is none, the one that `load` returns.
  std::shared_ptr<const Codebook> intern(uint64_t hash, const ChunkCodes::Load& load);
  std::shared_ptr<const Codebook> newestCodebook() const;
  std::shared_ptr<const Codebook> codebookFor(const std::shared_ptr<const Segment>& segment, const Deadline& deadline,
                                              bool plain);

  const Kernel& kernel_;
  const IndexOptions options_;
  Residents* const residents_;
  const MemoryOwner owner_;
  mutable std::mutex mutex_;
  /// An entry without a segment is being created or opened.
  std::map<uint64_t, Entry> entries_;
  uint64_t published_ = 0;
  std::map<uint64_t, std::weak_ptr<const Codebook>> codebooks_;
};

}  // namespace maxsimd
