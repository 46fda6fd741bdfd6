// One segment: a file of records (format.h), its directory in memory, and the lifespans of its records.
//
// One writer at a time (a mutex here), any number of readers, no lock on the read path: the directory never
// moves its elements, a mapping lives as long as its readers, and a record exists for a reader once
// `recordCount` says so.
#pragma once

#include "files/error.h"
#include "files/file.h"
#include "files/memory.h"
#include "kernels/cache_lines.h"
#include "store/footer.h"
#include "store/postings.h"
#include "store/record.h"
#include "store/stable_vector.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

inline constexpr uint64_t generationNever = UINT64_MAX;

/// A record is visible to generations g with born <= g < died. Stored as distance from "never", so that
/// zero-initialised memory means "not born".
struct Lifespan {
  std::atomic<uint64_t> bornComplement{0};
  std::atomic<uint64_t> diedComplement{0};

  uint64_t born() const { return ~bornComplement.load(std::memory_order_acquire); }
  uint64_t died() const { return ~diedComplement.load(std::memory_order_acquire); }
  void setBorn(uint64_t generation) { bornComplement.store(~generation, std::memory_order_release); }
  void setDied(uint64_t generation) { diedComplement.store(~generation, std::memory_order_release); }
  /// Born, and not dead: the newest generation sees it.
  bool alive() const { return born() != generationNever && died() == generationNever; }
  bool visibleAt(uint64_t generation) const { return born() <= generation && generation < died(); }
  /// Some generation from this one on may see it.
  bool visibleSince(uint64_t generation) const { return born() != generationNever && generation < died(); }
};

struct SegmentCounts {
  bool sealed;
  uint32_t records;
  uint32_t recordsLive;
  uint32_t chunks;
  uint64_t rows;
  /// Bytes of the terms of all records.
  uint64_t termBytes;
  uint64_t fileBytes;
  /// Size of the file of postings in use; 0 = none.
  uint64_t postingBytes;
};

/// Called every few records; what it throws ends the work.
using Checkpoint = std::function<void()>;

/// Reads the header of a file of `bytes` bytes; `corrupt` or `unsupported_version` if it is not a segment that can be
/// read.
FileHeader readFileHeader(const File& file, uint64_t bytes);

/// A copy of a segment that is being fetched.
struct PartialCopy {
  /// Where it lies, at its full length; what is derived from it lies beside the segment's own path.
  std::string path;
  uint64_t partBytes;
  /// What has come of it (present_parts.h).
  std::vector<uint8_t> parts;
};

class Segment {
 public:
  /// New file with its directory entry durable.
  static std::shared_ptr<Segment> create(uint64_t id, const std::string& path, uint32_t dim);
  /// `sealed`: whether its seal was noted elsewhere; then it is `corrupt` without its footer. Otherwise it is active, and
  /// whatever follows `recordsReferenced` records is cut off, a footer too: that it can be read does not say that it is
  /// durable. `partial`, of a sealed one: its file has not come whole; whatever needs what has not come throws
  /// `AbsentParts`.
  static std::shared_ptr<Segment> open(uint64_t id, const std::string& path, uint32_t dim, uint32_t recordsReferenced,
                                       bool sealed, const PartialCopy* partial = nullptr);

  uint64_t id() const { return id_; }
  uint32_t dim() const { return dim_; }
  const std::string& path() const { return path_; }
  SegmentCounts counts() const;
  bool sealed() const { return sealed_.load(std::memory_order_acquire); }

  // Writing. `append` takes the bytes of `assembleRecord` and returns the record's number.
  uint32_t append(std::span<const uint8_t> record);
  /// Everything appended before the call is durable when it returns.
  void sync();
  /// Its postings are durable before anything says that it is sealed.
  void seal();
  /// Saves the postings of a sealed segment anew, from the terms of its records; `corrupt` if a live one is damaged.
  void buildPostings(const Checkpoint& checkpoint);

  // Reading. Take `recordCount` first and the mapping after it: the mapping then covers those records.
  uint32_t recordCount() const { return recordCount_.load(std::memory_order_acquire); }
  std::shared_ptr<const Mapping> mapping() const;
  /// The same bytes for whoever reads all of them in order: the kernel reads ahead of it, which costs searches the memory
  /// that they want where they go here and there.
  std::shared_ptr<const Mapping> mappingInOrder() const { return file_.map(mapping()->bytes()); }
  const RecordEntry& record(uint32_t number) const { return records_[number]; }
  const ChunkEntry& chunk(uint32_t number) const { return chunks_[number]; }
  uint32_t chunkRows(uint32_t number) const;
  /// Ask for the memory that says where a chunk is, and then that of its record (kernels/cache_lines.h).
  void loadChunkPlace(uint32_t number) const { loadLines(chunks_[number]); }
  void loadRecordPlace(uint32_t number) const {
    loadLines(records_[number]);
    loadLines(checks_[number]);
  }
  RecordView view(const Mapping& mapping, uint32_t record) const;
  /// The bytes that `append` took. Throws `UnreadRecord` if they are not there as they were written.
  std::vector<uint8_t> read(const Mapping& mapping, uint32_t record) const;
  /// These parts of its file have come, too; of a whole one nothing is missing.
  void addParts(std::span<const uint8_t> bits);
  /// Adds what has not come of a record.
  void collectAbsent(uint32_t record, std::vector<AbsentPart>& absent) const;
  /// Records below `recordCount` that carry all terms, ascending. While the segment is active, and without usable
  /// postings, the records are read, and those that are damaged are among them: whoever scores one finds that out.
  std::vector<uint32_t> recordsMatching(std::span<const Term> terms, uint32_t recordCount,
                                        const Checkpoint& checkpoint) const;

  /// Likewise, term by term: calls visit(place of the term, records that carry it) any number of times for each; a record may
  /// come again. Returns the damaged ones, of whose terms nothing is known. The terms are distinct and ascending.
  using VisitCarriers = std::function<void(size_t, std::span<const uint32_t>)>;
  std::vector<uint32_t> visitCarriers(std::span<const Term> terms, uint32_t recordCount, const Checkpoint& checkpoint,
                                      const VisitCarriers& visit) const;

  /// True if intact; the result of the first check is remembered. `data` covers vectors and scales, `meta` the rest.
  bool metaIntact(const Mapping& mapping, uint32_t record) const;
  bool dataIntact(const Mapping& mapping, uint32_t record) const;
  /// Whether `dataIntact` will answer without reading the record.
  bool dataChecked(uint32_t record) const {
    return checks_[record].load(std::memory_order_relaxed) & (dataGood | dataBad);
  }
  /// Whether it was found damaged.
  bool knownDamaged(uint32_t record) const {
    return checks_[record].load(std::memory_order_relaxed) & (metaBad | dataBad);
  }

  /// Throws `UnreadRecord` if the mapping could not be read somewhere: what came of it may be zeros.
  void requireRead(const Mapping& mapping) const;
  /// Why a record that is not intact by this mapping is not.
  UnreadRecord unread(const Mapping& mapping, uint32_t record) const;
  struct Verified {
    /// What is wrong; empty = nothing.
    std::string damage;
    /// With the segment as a whole: its directory, or its length.
    bool wholeSegment = false;
  };
  /// Reads a record again without the mapping and, where the page cache lets go of it, from the disk. What is found is
  /// remembered, and a mapping that failed is replaced. `io` if the disk gives nothing at all: that says nothing.
  Verified verify(uint32_t record);

  const Lifespan& lifespan(uint32_t record) const { return lifespans_[record]; }
  /// By one thread at a time.
  void setLifespan(uint32_t record, uint64_t born, uint64_t died);

 private:
  enum Check : uint8_t { metaGood = 1, metaBad = 2, dataGood = 4, dataBad = 8 };

  Segment(uint64_t id, uint32_t dim, std::string path, File file);
  void openSealed(const Footer& footer, uint64_t fileBytes);
  void openActive(uint32_t recordsReferenced, uint64_t fileBytes);
  void reserve(uint64_t bytes);
  void growDirectory(uint32_t records, uint32_t chunks);
  void addRecord(const RecordView& view, uint64_t offset);
  void requireWritable() const;
  void setMapping(std::shared_ptr<const Mapping> mapping);
  bool check(const Mapping& mapping, uint32_t record, Check good, Check bad) const;
  /// The directory must describe the record that is there, or its checksums cover something else.
  bool isDescribed(const RecordView& view, uint32_t record) const;
  /// The last record that begins at or before an offset.
  uint32_t recordAt(uint64_t offset) const;
  Verified readAgain(uint32_t record) const;
  void replaceFailedMapping(bool intact);
  /// The postings of every record, for a file of them; `corrupt` if a live record is damaged.
  std::vector<Posting> collectPostings(const Checkpoint& checkpoint) const;
  /// The records of each term; nothing if they cannot be known without reading the records.
  std::optional<std::vector<std::vector<uint32_t>>> postingsOf(std::span<const Term> terms) const;
  /// Calls body(record, terms) for each record that may carry what `mayCarry` looks for by its signature; returns the
  /// damaged ones.
  template <typename MayCarry, typename Body>
  std::vector<uint32_t> readTerms(uint32_t recordCount, const Checkpoint& checkpoint, const MayCarry& mayCarry,
                                  const Body& body) const;
  std::vector<uint32_t> recordsCarrying(std::span<const Term> terms, uint32_t recordCount,
                                        const Checkpoint& checkpoint) const;
  PostingsOwner postingsOwner() const { return {id_, recordCount_, footerCrc_}; }

  const uint64_t id_;
  const uint32_t dim_;
  const std::string path_;
  File file_;

  std::mutex writing_;
  uint64_t end_ = 0;        // behind the last record
  uint64_t allocated_ = 0;  // blocks certain to exist
  std::atomic<bool> poisoned_{false};
  std::atomic<bool> sealed_{false};

  mutable std::mutex mappingMutex_;
  std::shared_ptr<const Mapping> mapping_;

  /// What the directory takes: the five vectors below.
  MemoryShare directory_;
  StableVector<RecordEntry> records_;
  StableVector<ChunkEntry> chunks_;
  StableVector<Lifespan> lifespans_;
  mutable StableVector<std::atomic<uint8_t>> checks_;
  /// Signatures of the records appended since the segment was opened: a record whose signature lacks a bit of a term's
  /// need not be read to know that it lacks the term. A sealed segment has none.
  StableVector<uint64_t> signatures_;
  std::atomic<uint32_t> recordCount_{0};
  std::atomic<uint32_t> recordsLive_{0};
  std::atomic<uint32_t> chunkCount_{0};
  std::atomic<uint64_t> rowCount_{0};
  std::atomic<uint64_t> termCount_{0};
  std::atomic<uint64_t> fileBytes_{0};

  mutable std::shared_mutex postingsMutex_;
  /// Null while the segment is active, when there are none, or when they were found damaged.
  mutable std::shared_ptr<const SealedPostings> sealedPostings_;
  /// Known of a sealed segment.
  uint32_t footerCrc_ = 0;
};

}  // namespace maxsimd
