#include "engine/index.h"

#include "engine/codebook_fit.h"
#include "store/error.h"

#include <string>

namespace maxsimd {
namespace {

Error unknownSegment(uint64_t id) {
  return Error(ErrorCode::invalidArgument, "segment " + std::to_string(id) + " is not open");
}

}  // namespace

Index::Index(const Kernel& kernel, IndexOptions options) : kernel_(kernel), options_(std::move(options)) {}

std::shared_ptr<Segment> Index::find(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.segment == nullptr) throw unknownSegment(id);
  return found->second.segment;
}

void Index::claim(uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (!entries_.try_emplace(id).second) {
    throw Error(ErrorCode::invalidArgument, "segment " + std::to_string(id) + " is already open");
  }
}

void Index::fill(uint64_t id, Entry entry) {
  const std::lock_guard lock(mutex_);
  // Dropped while it was being opened: nobody wants it any more.
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second = std::move(entry);
}

void Index::createSegment(uint64_t id, const std::string& path) {
  claim(id);
  try {
    fill(id, entryOf(Segment::create(id, path, options_.dim)));
  } catch (...) {
    dropSegment(id);
    throw;
  }
}

SegmentInfo Index::openSegment(uint64_t id, const std::string& path, uint32_t recordsReferenced) {
  claim(id);
  try {
    Entry entry = entryOf(Segment::open(id, path, options_.dim, recordsReferenced));
    if (entry.segment->sealed()) {
      entry.codes =
          ChunkCodes::open(*entry.segment, kernel_, [this](Codebook codebook) { return intern(std::move(codebook)); });
    }
    const SegmentInfo info = describe(id, entry);
    fill(id, std::move(entry));
    return info;
  } catch (...) {
    dropSegment(id);
    throw;
  }
}

uint32_t Index::append(uint64_t id, const RecordParts& parts) {
  return find(id)->append(assembleRecord(parts, options_.dim));
}

void Index::sync(uint64_t id) { find(id)->sync(); }

SegmentInfo Index::seal(uint64_t id) {
  const auto segment = find(id);
  segment->seal();
  return describe(id, {segment, nullptr, nullptr});
}

std::vector<uint32_t> Index::copyRecords(uint64_t from, std::span<const uint32_t> records, uint64_t to,
                                         const Deadline& deadline) {
  const auto source = find(from);
  const auto target = find(to);
  require(source != target, "records are copied into another segment");
  const uint32_t count = source->recordCount();
  const auto mapping = source->mapping();
  for (const uint32_t record : records) require(record < count, "records holds a number that the segment lacks");
  std::vector<uint32_t> copies;
  for (const uint32_t record : records) {
    deadline.check();
    if (!source->metaIntact(*mapping, record) || !source->dataIntact(*mapping, record)) {
      throw Error(ErrorCode::corrupt, source->path() + ": damaged record " + std::to_string(record));
    }
    const RecordView view = source->view(*mapping, record);
    copies.push_back(target->append({view.bytes, view.layout.bytes}));
  }
  return copies;
}

Index::Verification Index::verify(uint64_t id, const Deadline& deadline) {
  const auto segment = find(id);
  Verification result{segment->recordCount(), {}};
  const auto mapping = segment->mapping();
  for (uint32_t record = 0; record < result.records; ++record) {
    deadline.check();
    if (!segment->recheck(*mapping, record)) result.corrupt.push_back(record);
  }
  return result;
}

std::shared_ptr<const Codebook> Index::intern(Codebook codebook) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Codebook>& known = codebooks_[codebook.hash()];
  auto shared = known.lock();
  if (shared == nullptr) {
    shared = std::make_shared<const Codebook>(std::move(codebook));
    known = shared;
    std::erase_if(codebooks_, [](const auto& entry) { return entry.second.expired(); });
  }
  return shared;
}

/// The finest codebook of the others, unless the segment holds half of the index or more: then null.
std::shared_ptr<const Codebook> Index::codebookFor(const Segment& segment) const {
  const std::lock_guard lock(mutex_);
  uint64_t rows = 0;
  std::shared_ptr<const Codebook> finest;
  for (const auto& [id, entry] : entries_) {
    if (entry.segment == nullptr || !entry.segment->sealed()) continue;
    rows += entry.segment->counts().rows;
    if (entry.codes == nullptr || entry.segment.get() == &segment) continue;
    if (finest == nullptr || entry.codes->codebook().count() > finest->count()) finest = entry.codes->sharedCodebook();
  }
  return segment.counts().rows * 2 >= rows ? nullptr : finest;
}

Index::CodesBuilt Index::buildCodes(uint64_t id, const Deadline& deadline) {
  const auto segment = find(id);
  require(segment->sealed() && segment->counts().chunks > 0, "codes are built for sealed segments with chunks");
  auto codebook = codebookFor(*segment);
  const bool fitted = codebook == nullptr;
  if (fitted) {
    const uint32_t count = centroidsFor(segment->counts().rows);
    const TokenSample sample = sampleTokenVectors(*segment, count * sampleRowsPerCentroid, deadline);
    codebook = intern(Codebook(kernel_, fitCodebook(kernel_, options_.dim, sample, count, deadline)));
  }
  auto codes = ChunkCodes::build(
      *segment, kernel_, *codebook, [this](Codebook same) { return intern(std::move(same)); }, deadline);
  const CodesBuilt built{codes->chunks(), codes->fileBytes(), codebook->count(), fitted};
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.segment == segment) found->second.codes = std::move(codes);
  return built;
}

void Index::dropSegment(uint64_t id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
}

const Index::Entry& Index::recordEntry(const LifeChange& change) const {
  const auto found = entries_.find(change.segmentId);
  if (found == entries_.end() || found->second.segment == nullptr) throw unknownSegment(change.segmentId);
  require(change.record < found->second.segment->recordCount(), "records holds a number that the segment lacks");
  return found->second;
}

void Index::loadLives(std::span<const LifeLoad> lives) {
  const std::lock_guard lock(mutex_);
  for (const LifeLoad& life : lives) {
    const Segment& segment = *recordEntry(life.at).segment;
    if (segment.record(life.at.record).versionId != life.versionId) {
      throw Error(ErrorCode::corrupt,
                  segment.path() + ": record " + std::to_string(life.at.record) + " holds another document version");
    }
  }
  for (const LifeLoad& life : lives) {
    Life& loaded = recordEntry(life.at).segment->life(life.at.record);
    loaded.setBorn(life.born);
    loaded.setDied(life.died);
  }
  for (const auto& [id, entry] : entries_) {
    if (entry.live != nullptr) entry.live->reset();
  }
}

void Index::publish(uint64_t generation, std::span<const LifeChange> born, std::span<const LifeChange> died) {
  const std::lock_guard lock(mutex_);
  require(generation > published_, "generation must be greater than the last one published");
  for (const auto changes : {born, died}) {
    for (const LifeChange& change : changes) recordEntry(change);
  }
  for (const LifeChange& change : born) recordEntry(change).segment->life(change.record).setBorn(generation);
  for (const LifeChange& change : died) recordEntry(change).segment->life(change.record).setDied(generation);
  for (const auto changes : {born, died}) {
    for (const LifeChange& change : changes) recordEntry(change).live->note(generation, change.record);
  }
  published_ = generation;
}

std::vector<SegmentSnapshot> Index::snapshot() const {
  std::vector<SegmentSnapshot> snapshots;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.segment == nullptr) continue;
    const uint32_t records = entry.segment->recordCount();
    snapshots.push_back({entry.segment, entry.live, entry.codes, entry.segment->mapping(), records});
  }
  return snapshots;
}

Index::Entry Index::entryOf(std::shared_ptr<Segment> segment) {
  auto live = std::make_shared<LiveTracker>(segment);
  return {std::move(segment), std::move(live), nullptr};
}

SegmentInfo Index::describe(uint64_t id, const Entry& entry) {
  const ChunkCodes* codes = entry.codes.get();
  return {id, entry.segment->counts(), codes == nullptr ? 0 : codes->fileBytes(),
          codes == nullptr ? 0 : codes->codebook().count()};
}

std::vector<SegmentInfo> Index::segments() const {
  std::vector<SegmentInfo> infos;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.segment != nullptr) infos.push_back(describe(id, entry));
  }
  return infos;
}

}  // namespace maxsimd
