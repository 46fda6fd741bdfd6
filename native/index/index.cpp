#include "index/index.h"

#include "codes/codebook_file.h"
#include "codes/codebook_fit.h"
#include "codes/search_tuning.h"
#include "files/error.h"
#include "files/memory.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace maxsimd {
namespace {

/// A codebook is fitted anew once the index has grown by this factor since the last fit. With a doubling, each fit
/// costs as much as all before it.
constexpr double growthMost = 2.0;
/// It is also fitted anew once the mean dot product of the index's token vectors with their centroids has fallen by this
/// much, because texts of another kind have come or taken the place of others. A fit sets the mean anew, so it is no
/// reason for the next one.
constexpr double shareUnlike = 0.02;
constexpr uint32_t shareSampleRows = 8192;
/// A fit holds its sample and fewer than this many copies of it in all.
constexpr uint64_t fitCopies = 3;

/// Token vectors of live records.
uint64_t liveRows(const Segment& segment) {
  uint64_t rows = 0;
  for (uint32_t r = 0; r < segment.recordCount(); ++r) {
    if (segment.lifespan(r).alive()) rows += segment.record(r).rows;
  }
  return rows;
}

/// Whether the codebook must be fitted anew for an index of `rows` token vectors, those of `segments`.
bool outgrown(const Codebook& codebook, uint64_t rows, std::span<const std::shared_ptr<const Segment>> segments,
              const Deadline& deadline) {
  const CodebookData& data = codebook.data();
  if (data.fittedRows == UINT32_MAX) return false;
  if (double(rows) >= growthMost * data.fittedRows) return true;
  const TokenSample sample = sampleTokenVectors(segments, shareSampleRows, deadline);
  std::vector<uint32_t> codes(sample.rows);
  codebook.assign(sample.vectors.data(), sample.rows, codes.data());
  return codebook.share(sample.vectors.data(), sample.scales.data(), sample.rows, codes.data()) <
         double(data.share) - shareUnlike;
}

ColumnPlace columnPlaceOf(const Segment& segment) { return {segment.path(), segment.identity()}; }

/// The records of a segment by their version, each of which is taken once.
class RecordsByVersion {
 public:
  explicit RecordsByVersion(const Segment& segment)
      : taken_(segment.recordCount()), memory_(segment.owner(), taken_.size() * sizeof(Numbered)) {
    numbered_.reserve(taken_.size());
    for (uint32_t record = 0; record < taken_.size(); ++record) {
      numbered_.push_back({segment.record(record).versionId, record});
    }
    std::ranges::sort(numbered_);
  }

  /// For each record of another segment the number of the same version here, or `RunSource::left`.
  std::vector<uint32_t> take(const Segment& other) {
    std::vector<uint32_t> numbers(other.recordCount(), RunSource::left);
    for (uint32_t record = 0; record < numbers.size(); ++record) {
      const uint64_t versionId = other.record(record).versionId;
      const auto found = std::ranges::lower_bound(numbered_, Numbered{versionId, 0});
      if (found == numbered_.end() || found->first != versionId || taken_.test(found->second)) continue;
      taken_.set(found->second);
      numbers[record] = found->second;
    }
    return numbers;
  }

 private:
  using Numbered = std::pair<uint64_t, uint32_t>;

  Bitmap taken_;
  const MemoryShare memory_;
  std::vector<Numbered> numbered_;
};

Error unknownSegment(uint64_t id) {
  return Error(ErrorCode::invalidArgument, "segment " + std::to_string(id) + " is not open");
}

}  // namespace

Index::Index(const Kernel& kernel, IndexOptions options, Residents* residents)
    : kernel_(kernel),
      options_(std::move(options)),
      residents_(residents),
      owner_(Memory::ofProcess().accountOf(options_.owner)) {}

Index::Entry Index::findEntry(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.segment == nullptr) throw unknownSegment(id);
  return found->second;
}

void Index::claim(uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (!entries_.try_emplace(id).second) {
    throw Error(ErrorCode::invalidArgument, "segment " + std::to_string(id) + " is already open");
  }
}

void Index::fill(uint64_t id, Entry entry) {
  const std::lock_guard lock(mutex_);
  // If it was dropped while it was being opened, it stays dropped.
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second = std::move(entry);
}

void Index::createSegment(uint64_t id, const std::string& path) {
  claim(id);
  try {
    fill(id, entryOf(Segment::create(id, path, options_.shape, owner_)));
  } catch (...) {
    dropSegment(id);
    throw;
  }
}

SegmentInfo Index::openSegment(uint64_t id, const std::string& path, uint32_t recordsReferenced, bool sealed,
                               const PartialCopy* partial) {
  claim(id);
  try {
    Entry entry = entryOf(Segment::open(id, path, options_.shape, recordsReferenced, sealed, partial, owner_));
    if (entry.segment->sealed()) {
      entry.codes = ChunkCodes::open(
          *entry.segment, kernel_, [this](uint64_t hash, const ChunkCodes::Load& load) { return intern(hash, load); });
    }
    if (entry.codes != nullptr) entry.values->keepFiles(columnPlaceOf(*entry.segment));
    fill(id, entry);
    // Not looked up: it may have been dropped meanwhile.
    const std::lock_guard lock(mutex_);
    return describe(id, entry, newestCodebook().get());
  } catch (...) {
    dropSegment(id);
    throw;
  }
}

uint32_t Index::append(uint64_t id, const RecordParts& parts) {
  return find(id)->append(assembleRecord(parts, options_.shape));
}

void Index::sync(uint64_t id) { find(id)->sync(); }

SegmentInfo Index::seal(uint64_t id) {
  const auto segment = find(id);
  segment->seal();
  // Not looked up: it may have been dropped meanwhile.
  return describe(id, {segment, nullptr, nullptr, nullptr}, nullptr);
}

std::vector<uint32_t> Index::copyRecords(uint64_t from, std::span<const uint32_t> records, uint64_t to,
                                         const Deadline& deadline) {
  const auto source = find(from);
  const auto target = find(to);
  require(source != target, "records are copied into another segment");
  const uint32_t count = source->recordCount();
  const auto mapping = source->mappingInOrder();
  for (const uint32_t record : records) require(record < count, "records holds a number that the segment lacks");
  std::vector<uint32_t> copies;
  for (const uint32_t record : records) {
    deadline.check();
    copies.push_back(target->append(source->read(*mapping, record)));
  }
  return copies;
}

std::vector<uint8_t> Index::readRecord(uint64_t id, uint32_t record) const {
  const auto segment = find(id);
  require(record < segment->recordCount(), "record is a number that the segment lacks");
  return segment->read(*segment->mapping(), record);
}

std::shared_ptr<const Codebook> Index::intern(uint64_t hash, const ChunkCodes::Load& load) {
  const auto known = [&] {
    const std::lock_guard lock(mutex_);
    return codebooks_[hash].lock();
  };
  if (auto codebook = known()) return codebook;
  std::optional<Codebook> loaded = load();
  if (!loaded) return nullptr;
  auto codebook = std::make_shared<const Codebook>(std::move(*loaded));
  const std::lock_guard lock(mutex_);
  std::erase_if(codebooks_, [](const auto& entry) { return entry.second.expired(); });
  // Another thread may have loaded it in the meantime.
  std::weak_ptr<const Codebook>& place = codebooks_[hash];
  if (const auto other = place.lock()) return other;
  place = codebook;
  return codebook;
}

/// The codebook that was fitted last; null if no segment has codes.
std::shared_ptr<const Codebook> Index::newestCodebook() const {
  const auto age = [](const Codebook& codebook) {
    const CodebookData& data = codebook.data();
    return std::tuple(data.fitsBefore, data.fittedRows, codebook.hash());
  };
  std::shared_ptr<const Codebook> newest;
  for (const auto& [id, entry] : entries_) {
    if (entry.codes == nullptr) continue;
    if (newest == nullptr || age(entry.codes->codebook()) > age(*newest)) newest = entry.codes->sharedCodebook();
  }
  return newest;
}

/// The index's newest codebook, if it still fits the index and this segment; else a new one.
std::shared_ptr<const Codebook> Index::codebookFor(const std::shared_ptr<const Segment>& segment,
                                                   const Deadline& deadline, bool plain) {
  std::shared_ptr<const Codebook> newest;
  std::vector<std::shared_ptr<const Segment>> sealed;
  bool isCoded = false;
  {
    const std::lock_guard lock(mutex_);
    newest = newestCodebook();
    for (const auto& [id, entry] : entries_) {
      if (entry.segment != nullptr && entry.segment->sealed()) sealed.push_back(entry.segment);
      if (entry.segment == segment) isCoded = entry.codes != nullptr;
    }
  }
  // A segment that is coded again brings nothing new.
  if (newest != nullptr && isCoded) return newest;
  // Count live records only: during a merge its records exist twice.
  uint64_t rows = 0;
  std::vector<std::shared_ptr<const Segment>> sources{segment};
  for (const auto& source : sealed) {
    const uint64_t live = liveRows(*source);
    rows += live;
    if (live > 0 && source != segment) sources.push_back(source);
  }
  rows = std::max(rows, segment->counts().rows);
  if (newest != nullptr && !outgrown(*newest, rows, sources, deadline)) return newest;
  const uint32_t count = options_.centroids > 0 ? options_.centroids : SearchTuning::centroids(rows);
  // They take 800 MiB at 128 dimensions.
  constexpr uint32_t sampledMost = 131'072 * SearchTuning::fitRowsPerCentroid;
  const uint32_t sampled = std::min(count * SearchTuning::fitRowsPerCentroid, sampledMost);
  const MemoryShare fitting(owner_, uint64_t(sampled) * (options_.shape.dim + sizeof(uint16_t)) * fitCopies);
  const TokenSample sample = sampleTokenVectors(sources, sampled, deadline);
  const TokenSample part = sampleTokenVectors(sources, SearchTuning::fitRows, deadline);
  CodebookData data = fitCodebook(kernel_, options_.shape.dim, sample, part, count, deadline, !plain);
  data.fittedRows = uint32_t(std::min<uint64_t>(rows, UINT32_MAX));
  data.fitsBefore = newest == nullptr ? 0 : newest->data().fitsBefore + 1;
  Codebook fitted(kernel_, std::move(data), owner_);
  return intern(fitted.hash(), [&] { return std::optional(std::move(fitted)); });
}

Index::CodesBuilt Index::buildCodes(uint64_t id, const Deadline& deadline, bool plain) {
  const std::shared_ptr<const Segment> segment = find(id);
  require(segment->sealed() && segment->counts().chunks > 0, "codes are built for sealed segments with chunks");
  const auto codebook = codebookFor(segment, deadline, plain);
  const MemoryShare building(owner_, ChunkCodes::buildBytesPerRow * segment->counts().rows);
  auto codes = ChunkCodes::build(
      *segment, kernel_, *codebook, [this](uint64_t hash, const ChunkCodes::Load& load) { return intern(hash, load); },
      deadline);
  const std::lock_guard lock(mutex_);
  const bool fitted = newestCodebook() != codebook;
  const CodesBuilt built{codes->chunks(), codes->fileBytes(), codebook->count(), fitted};
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.segment != segment) return built;
  found->second.codes = std::move(codes);
  found->second.values->keepFiles(columnPlaceOf(*segment));
  return built;
}

void Index::buildGraph(const Deadline& deadline) {
  std::shared_ptr<const Codebook> newest;
  {
    const std::lock_guard lock(mutex_);
    newest = newestCodebook();
  }
  if (newest == nullptr || newest->count() < graphCentroids) return;
  try {
    newest->buildGraph(deadline);
  } catch (const std::exception&) {
    // There is no memory for it, or the engine is being closed.
  }
}

void Index::buildPostings(uint64_t id, const Deadline& deadline) {
  find(id)->buildPostings([&deadline] { deadline.check(); });
}

void Index::dropSegment(uint64_t id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
}

void Index::dropCodes(uint64_t id, const std::shared_ptr<const ChunkCodes>& codes) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.codes == codes) found->second.codes = nullptr;
}

const Index::Entry& Index::recordEntry(const LifespanChange& change) const {
  const auto found = entries_.find(change.segmentId);
  if (found == entries_.end() || found->second.segment == nullptr) throw unknownSegment(change.segmentId);
  require(change.record < found->second.segment->recordCount(), "records holds a number that the segment lacks");
  return found->second;
}

void Index::loadLifespans(std::span<const LifespanLoad> lifespans) {
  const std::lock_guard lock(mutex_);
  for (const LifespanLoad& lifespan : lifespans) {
    const Segment& segment = *recordEntry(lifespan.at).segment;
    if (segment.knownDamaged(lifespan.at.record)) {
      if (lifespan.died != generationNever) continue;
      throw Error(ErrorCode::corrupt, segment.path() + ": damaged record " + std::to_string(lifespan.at.record));
    }
    if (segment.record(lifespan.at.record).versionId != lifespan.versionId) {
      throw Error(ErrorCode::corrupt, segment.path() + ": record " + std::to_string(lifespan.at.record) +
                                          " holds another document version");
    }
  }
  for (const LifespanLoad& lifespan : lifespans) {
    recordEntry(lifespan.at).segment->setLifespan(lifespan.at.record, lifespan.born, lifespan.died);
  }
  std::set<LiveTracker*> changed;
  for (const LifespanLoad& lifespan : lifespans) changed.insert(recordEntry(lifespan.at).live.get());
  for (LiveTracker* live : changed) live->reset(published_);
}

Index::SeenRecords Index::recordsSeenSince(uint64_t id, uint64_t generation) const {
  const auto segment = find(id);
  SeenRecords seen;
  for (uint32_t record = 0, count = segment->recordCount(); record < count; ++record) {
    if (!segment->lifespan(record).visibleSince(generation)) continue;
    seen.records.push_back(record);
    seen.versionIds.push_back(double(segment->record(record).versionId));
  }
  return seen;
}

Index::SeenRecords Index::recordsWithoutValues(uint64_t id, uint64_t generation,
                                               std::span<const std::string> fields) const {
  const Entry entry = findEntry(id);
  const Segment& segment = *entry.segment;
  SeenRecords lacking;
  lacking.records = entry.values->lacking(fields, segment.recordCount(), [&](uint32_t record) {
    return segment.lifespan(record).visibleSince(generation);
  });
  for (const uint32_t record : lacking.records) lacking.versionIds.push_back(double(segment.record(record).versionId));
  return lacking;
}

void Index::addValues(uint64_t id, std::span<const std::string> fields, std::span<const uint32_t> records,
                      std::span<const std::string> objects) {
  const Entry entry = findEntry(id);
  require(records.size() == objects.size(), "records must have one object each");
  for (const uint32_t record : records) {
    require(record < entry.segment->recordCount(), "records holds a number that the segment lacks");
  }
  entry.values->add(fields, records, objects);
  if (Memory::ofProcess().makeRoom(*owner_, {this, fields})) return;
  // The next request may want other columns, which then find room.
  for (const SegmentSnapshot& each : snapshot()) each.values->reclaim({});
  throw Error(ErrorCode::noMemory, "no room for the values of the index");
}

std::function<FieldValues::Saved()> Index::copyOfValues(uint64_t id) const {
  const Entry target = findEntry(id);
  std::vector<Entry> others;
  const std::lock_guard lock(mutex_);
  for (const auto& [otherId, entry] : entries_) {
    if (entry.segment != nullptr && otherId != id) others.push_back(entry);
  }
  return [target, others] {
    if (!target.values->keepsFiles()) return FieldValues::Saved();
    return target.values->copy(sourcesOf(target, others));
  };
}

/// The columns of the segments that have versions of the target's, each version once.
std::vector<FieldValues::Source> Index::sourcesOf(const Entry& target, const std::vector<Entry>& others) {
  std::vector<FieldValues::Source> sources;
  RecordsByVersion records(*target.segment);
  for (const Entry& other : others) {
    auto numbers = records.take(*other.segment);
    const bool isSource = std::ranges::any_of(numbers, [](uint32_t number) { return number != RunSource::left; });
    if (isSource) sources.push_back({other.values, std::move(numbers)});
  }
  return sources;
}

void Index::copyLifespans(uint64_t from, std::span<const uint32_t> records, uint64_t to, uint32_t first) {
  std::vector<LifespanLoad> lifespans;
  {
    const std::lock_guard lock(mutex_);
    for (const uint32_t record : records) {
      const Segment& source = *recordEntry({from, record}).segment;
      const Lifespan& lifespan = source.lifespan(record);
      lifespans.push_back({{to, first++}, source.record(record).versionId, lifespan.born(), lifespan.died()});
    }
  }
  loadLifespans(lifespans);
}

void Index::publish(uint64_t generation, std::span<const LifespanChange> born, std::span<const LifespanChange> died) {
  const std::lock_guard lock(mutex_);
  require(generation > published_, "generation must be greater than the last one published");
  const auto lifespanOf = [&](const LifespanChange& change) -> const Lifespan& {
    return recordEntry(change).segment->lifespan(change.record);
  };
  for (const LifespanChange& change : born) {
    require(lifespanOf(change).born() == generationNever, "a record is born once");
  }
  for (const LifespanChange& change : died) require(lifespanOf(change).alive(), "a version dies once");
  for (const LifespanChange& change : born) {
    recordEntry(change).segment->setLifespan(change.record, generation, generationNever);
  }
  for (const LifespanChange& change : died) {
    recordEntry(change).segment->setLifespan(change.record, lifespanOf(change).born(), generation);
  }
  for (const auto changes : {born, died}) {
    for (const LifespanChange& change : changes) recordEntry(change).live->note(generation, change.record);
  }
  published_ = generation;
}

std::vector<SegmentSnapshot> Index::snapshot() const {
  std::vector<SegmentSnapshot> snapshots;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.segment == nullptr) continue;
    const uint32_t records = entry.segment->recordCount();
    snapshots.push_back(
        {entry.segment, entry.live, entry.codes, entry.values, entry.segment->mapping(), records, entry.live->epoch()});
  }
  return snapshots;
}

Index::Entry Index::entryOf(std::shared_ptr<Segment> segment) const {
  auto live = std::make_shared<LiveTracker>(segment);
  auto values = std::make_shared<FieldValues>(owner_, this);
  Memory::ofProcess().offer(ReclaimOrder::columns, values);
  return {std::move(segment), std::move(live), nullptr, std::move(values)};
}

SegmentInfo Index::describe(uint64_t id, const Entry& entry, const Codebook* newest) {
  const ChunkCodes* codes = entry.codes.get();
  const SegmentCounts counts = entry.segment->counts();
  if (codes == nullptr) return {id, counts, counts.postingBytes, 0, "", false};
  const Codebook& codebook = codes->codebook();
  return {id,
          counts,
          counts.postingBytes + codes->fileBytes(),
          codebook.count(),
          codebookName(codebook.hash()),
          &codebook != newest};
}

std::vector<SegmentInfo> Index::segments() const {
  std::vector<SegmentInfo> infos;
  const std::lock_guard lock(mutex_);
  const auto newest = newestCodebook();
  std::set<const Codebook*> counted;
  for (const auto& [id, entry] : entries_) {
    if (entry.segment == nullptr) continue;
    infos.push_back(describe(id, entry, newest.get()));
    if (entry.codes == nullptr) continue;
    const Codebook& codebook = entry.codes->codebook();
    if (counted.insert(&codebook).second) infos.back().derivedBytes += codebookFileBytes(codebook);
  }
  return infos;
}

}  // namespace maxsimd
