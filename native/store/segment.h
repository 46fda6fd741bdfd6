// A segment: a file of records (format.h), its directory in memory, and the lifespans of its records.
//
// There is one writer at a time (a mutex here) and any number of readers, which take no lock. The directory never moves
// its elements. A mapping lives as long as its readers. A record exists for a reader once `recordCount` includes it.
#pragma once

#include "files/error.h"
#include "files/file.h"
#include "files/memory.h"
#include "kernels/cache_lines.h"
#include "store/footer.h"
#include "store/postings.h"
#include "store/record.h"
#include "files/stable_vector.h"

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

/// The generations that see a record: those g with born <= g < died. Stored as the distance from "never", so that
/// zeroed memory means "not born".
struct Lifespan {
  std::atomic<uint64_t> bornComplement{0};
  std::atomic<uint64_t> diedComplement{0};

  uint64_t born() const { return ~bornComplement.load(std::memory_order_acquire); }
  uint64_t died() const { return ~diedComplement.load(std::memory_order_acquire); }
  void setBorn(uint64_t generation) { bornComplement.store(~generation, std::memory_order_release); }
  void setDied(uint64_t generation) { diedComplement.store(~generation, std::memory_order_release); }
  /// Born and not dead: the newest generation sees it.
  bool alive() const { return born() != generationNever && died() == generationNever; }
  bool visibleAt(uint64_t generation) const { return born() <= generation && generation < died(); }
  /// Whether this generation or a later one may see it.
  bool visibleSince(uint64_t generation) const { return born() != generationNever && generation < died(); }
};

struct SegmentCounts {
  bool sealed;
  /// Its format has room for the ranges of chunks in their texts.
  bool keepsRanges;
  uint32_t records;
  uint32_t recordsLive;
  uint32_t chunks;
  uint64_t rows;
  /// Bytes of all records' terms.
  uint64_t termBytes;
  uint64_t fileBytes;
  /// Size of the file of postings that is used; 0 = none.
  uint64_t postingBytes;
};

/// Called every few records. An exception from it ends the work.
using Checkpoint = std::function<void()>;

/// Reads the header of a file of `bytes` bytes. Throws `corrupt` or `unsupported_version` if it is no segment that can
/// be read.
FileHeader readFileHeader(const File& file, uint64_t bytes);

/// A copy of a segment that is being fetched.
struct PartialCopy {
  /// The file, at its full length. Derived files lie beside the segment's own path.
  std::string path;
  uint64_t partBytes;
  /// The parts that have been fetched, one bit each (present_parts.h).
  std::vector<uint8_t> parts;
};

class RecentTerms;

class Segment {
 public:
  /// Creates the file and makes its directory entry durable.
  static std::shared_ptr<Segment> create(uint64_t id, const std::string& path, RowShape shape,
                                         MemoryOwner owner = nobody());
  /// `sealed`: the catalog notes it as sealed. Then it is `corrupt` without its footer. Otherwise it is active, and
  /// everything after `recordsReferenced` records is cut off, even a footer: a footer that can be read may still not be
  /// durable. `partial`, for sealed segments only: the file is being fetched, and what needs missing bytes throws
  /// `AbsentParts`.
  static std::shared_ptr<Segment> open(uint64_t id, const std::string& path, RowShape shape, uint32_t recordsReferenced,
                                       bool sealed, const PartialCopy* partial = nullptr, MemoryOwner owner = nobody());

  uint64_t id() const { return id_; }
  uint32_t dim() const { return shape_.dim; }
  RowShape shape() const { return shape_; }
  const std::string& path() const { return path_; }
  const MemoryOwner& owner() const { return owner_; }
  SegmentCounts counts() const;
  bool sealed() const { return sealed_.load(std::memory_order_acquire); }

  /// Names the content of a sealed segment, to which derived files belong.
  SegmentIdentity identity() const { return {id_, recordCount_, footerCrc_}; }

  // Writing. `append` takes the bytes of `assembleRecord` and returns the record's number. It throws `no_space` on a
  // full disk, and `io` after a failed sync.
  uint32_t append(std::span<const uint8_t> record);
  /// Makes everything appended before the call durable. After a failure the segment is never written again.
  void sync();
  /// Writes the footer. The postings are durable before the segment counts as sealed.
  void seal();
  /// Saves the postings of a sealed segment again, from the terms of its records. `corrupt` if a live record is
  /// damaged.
  void buildPostings(const Checkpoint& checkpoint);

  // Reading. Take `recordCount` first and the mapping second: the mapping then covers those records.
  uint32_t recordCount() const { return recordCount_.load(std::memory_order_acquire); }
  std::shared_ptr<const Mapping> mapping() const;
  /// A second mapping, for readers that go through the whole segment in order. The system reads ahead there. In the
  /// mapping of searches that would waste memory.
  std::shared_ptr<const Mapping> mappingInOrder() const { return file_.map(mapping()->bytes()); }
  const RecordEntry& record(uint32_t number) const { return records_[number]; }
  const ChunkEntry& chunk(uint32_t number) const { return chunks_[number]; }
  uint32_t chunkRows(uint32_t number) const;
  /// Load the directory entry of a chunk, and then that of its record (kernels/cache_lines.h).
  void loadChunkPlace(uint32_t number) const { loadLines(chunks_[number]); }
  void loadRecordPlace(uint32_t number) const {
    loadLines(records_[number]);
    loadLines(checks_[number]);
  }
  RecordView view(const Mapping& mapping, uint32_t record) const;
  /// The bytes that `append` took. Throws `UnreadRecord` if they cannot be read or are damaged.
  std::vector<uint8_t> read(const Mapping& mapping, uint32_t record) const;
  /// Marks parts of the file as fetched. Does nothing if the file is complete.
  void addParts(std::span<const uint8_t> bits);
  /// Appends the missing parts of a record to `absent`.
  void collectAbsent(uint32_t record, std::vector<AbsentPart>& absent) const;
  /// The records below `recordCount` that carry all terms, ascending. Without usable postings the records themselves are
  /// read, and in an active segment those that may carry the terms. The result then includes damaged ones, because scoring
  /// them will report the damage.
  std::vector<uint32_t> recordsMatching(std::span<const Term> terms, uint32_t recordCount,
                                        const Checkpoint& checkpoint) const;

  /// The same term by term: calls visit(place of the term, records that carry it), perhaps several times for a term,
  /// and perhaps with a record twice. If it returns false, further records of that term may be left out. Returns damaged records, whose terms are unknown. `terms` are distinct and
  /// ascending.
  using VisitCarriers = std::function<bool(size_t, std::vector<uint32_t>)>;
  std::vector<uint32_t> visitCarriers(std::span<const Term> terms, uint32_t recordCount, const Checkpoint& checkpoint,
                                      const VisitCarriers& visit) const;

  /// Whether a record is intact; the first result is remembered. `data` covers vectors and scales, `meta` the rest.
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

  /// Throws `UnreadRecord` if the mapping has failed, because everything read from it may be zeros.
  void requireRead(const Mapping& mapping) const;
  /// The error for a record that this mapping does not show as intact.
  UnreadRecord unread(const Mapping& mapping, uint32_t record) const;
  struct Verified {
    /// The damage; empty = none.
    std::string damage;
    /// The whole segment is damaged: its directory or its length.
    bool wholeSegment = false;
  };
  /// Reads a record again without the mapping, and from the disk if the page cache drops it. Remembers the result and
  /// replaces a mapping that failed. Throws `io` if the disk gives nothing at all, which says nothing about the record.
  Verified verify(uint32_t record);

  const Lifespan& lifespan(uint32_t record) const { return lifespans_[record]; }
  /// By one thread at a time.
  void setLifespan(uint32_t record, uint64_t born, uint64_t died);

 private:
  enum Check : uint8_t { metaGood = 1, metaBad = 2, dataGood = 4, dataBad = 8 };

  Segment(uint64_t id, RowShape shape, std::string path, File file, MemoryOwner owner);
  void openSealed(const Footer& footer, uint64_t fileBytes);
  void openActive(uint32_t recordsReferenced, uint64_t fileBytes);
  void reserve(uint64_t bytes);
  void growDirectory(uint32_t records, uint32_t chunks);
  void addRecord(const RecordView& view, uint64_t offset);
  void requireWritable() const;
  void setMapping(std::shared_ptr<const Mapping> mapping);
  bool check(const Mapping& mapping, uint32_t record, Check good, Check bad) const;
  /// Whether the directory describes the record that is there. If not, the checksums cover something else.
  bool isDescribed(const RecordView& view, uint32_t record) const;
  /// The last record that begins at or before `offset`.
  uint32_t recordAt(uint64_t offset) const;
  Verified readAgain(uint32_t record) const;
  void replaceFailedMapping(bool intact);
  /// The postings of all records. `corrupt` if a live record is damaged.
  std::vector<Posting> collectPostings(const Checkpoint& checkpoint) const;
  /// Calls visit(place of the term, records that carry it, ascending) for each term, in order; in an active segment with
  /// damaged records. False if all records must be read to tell.
  bool visitLists(std::span<const Term> terms, uint32_t recordCount, const Checkpoint& checkpoint,
                  const VisitCarriers& visit) const;
  void visitRecent(RecentTerms& recent, std::span<const Term> terms, uint32_t recordCount, const Checkpoint& checkpoint,
                   const VisitCarriers& visit) const;
  std::vector<uint32_t> damagedBelow(uint32_t recordCount) const;
  /// Calls body(record, terms) for each record. Returns the damaged ones.
  template <typename Body>
  std::vector<uint32_t> readTerms(uint32_t recordCount, const Checkpoint& checkpoint, const Body& body) const;
  std::vector<uint32_t> recordsCarrying(std::span<const Term> terms, uint32_t recordCount,
                                        const Checkpoint& checkpoint) const;

  const uint64_t id_;
  const RowShape shape_;
  const std::string path_;
  const MemoryOwner owner_;
  File file_;
  /// Set before anybody reads it.
  bool keepsRanges_ = true;

  std::mutex writing_;
  /// Where the next record goes.
  uint64_t end_ = 0;
  /// Bytes whose blocks are allocated.
  uint64_t allocated_ = 0;
  std::atomic<bool> poisoned_{false};
  std::atomic<bool> sealed_{false};

  mutable std::mutex mappingMutex_;
  std::shared_ptr<const Mapping> mapping_;

  /// Memory of the directory: the four vectors below.
  MemoryShare directory_{owner_};
  StableVector<RecordEntry> records_;
  StableVector<ChunkEntry> chunks_;
  StableVector<Lifespan> lifespans_;
  mutable StableVector<std::atomic<uint8_t>> checks_;
  std::atomic<uint32_t> recordCount_{0};
  std::atomic<uint32_t> recordsLive_{0};
  std::atomic<uint32_t> chunkCount_{0};
  std::atomic<uint64_t> rowCount_{0};
  std::atomic<uint64_t> termCount_{0};
  std::atomic<uint64_t> fileBytes_{0};

  mutable std::shared_mutex postingsMutex_;
  /// Null once the segment is sealed.
  std::shared_ptr<RecentTerms> recentTerms_;
  /// Null while the segment is active, and if the postings are missing or damaged.
  mutable std::shared_ptr<const SealedPostings> sealedPostings_;
  /// Set when the segment is sealed.
  uint32_t footerCrc_ = 0;
};

}  // namespace maxsimd
