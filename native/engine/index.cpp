#include "engine/index.h"

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
    fill(id, {Segment::create(id, path, options_.dim), nullptr});
  } catch (...) {
    dropSegment(id);
    throw;
  }
}

SegmentInfo Index::openSegment(uint64_t id, const std::string& path, uint32_t recordsReferenced) {
  claim(id);
  try {
    Entry entry{Segment::open(id, path, options_.dim, recordsReferenced), nullptr};
    if (entry.segment->sealed() && options_.codebook) {
      entry.graph = Graph::open(*entry.segment, kernel_, *options_.projection, options_.threads);
    }
    const SegmentInfo info = describe(id, entry);
    fill(id, std::move(entry));
    return info;
  } catch (...) {
    dropSegment(id);
    throw;
  }
}

uint32_t Index::append(uint64_t id, RecordParts parts) {
  const auto segment = find(id);
  if (options_.codebook) options_.codebook->assign(parts);
  return segment->append(assembleRecord(parts, options_.dim));
}

void Index::sync(uint64_t id) { find(id)->sync(); }

SegmentInfo Index::seal(uint64_t id) {
  const auto segment = find(id);
  segment->seal();
  return describe(id, {segment, nullptr});
}

std::vector<uint32_t> Index::copyRecords(uint64_t from, std::span<const uint32_t> records, uint64_t to,
                                         const Deadline& deadline) {
  const auto source = find(from);
  const auto target = find(to);
  require(source != target, "records are copied into another segment");
  const uint32_t count = source->recordCount();
  const auto mapping = source->mapping();
  for (const uint32_t record : records) require(record < count, "records holds a number that the segment lacks");
  const uint64_t codebook = options_.codebook ? options_.codebook->hash() : 0;
  std::vector<uint32_t> copies;
  for (const uint32_t record : records) {
    deadline.check();
    if (!source->metaIntact(*mapping, record) || !source->dataIntact(*mapping, record)) {
      throw Error(ErrorCode::corrupt, source->path() + ": damaged record " + std::to_string(record));
    }
    const RecordView view = source->view(*mapping, record);
    if (codebook == 0 || source->record(record).codebook == codebook) {
      copies.push_back(target->append({view.bytes, view.layout.bytes}));
      continue;
    }
    // Written with another codebook, or none: the copy gets codes of the present one.
    const RecordHeader& header = view.header();
    RecordParts parts;
    parts.versionId = header.versionId;
    parts.chunkRows.assign(view.chunkRows(), view.chunkRows() + header.chunks);
    parts.vectors.assign(view.vectors(), view.vectors() + size_t(header.rows) * options_.dim);
    parts.vectors.resize(parts.vectors.size() + readPaddingBytes);
    parts.scales.assign(view.scales(), view.scales() + header.rows);
    parts.terms.assign(view.terms(), view.terms() + size_t(header.terms) * termBytes);
    options_.codebook->assign(parts);
    copies.push_back(target->append(assembleRecord(parts, options_.dim)));
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

Index::GraphBuilt Index::buildGraph(uint64_t id, const Deadline& deadline) {
  require(options_.codebook != nullptr, "graphs need a codebook to choose among their candidates");
  const auto segment = find(id);
  require(segment->sealed() && segment->counts().chunks > 0, "graphs are built for sealed segments with chunks");
  auto graph = Graph::build(*segment, kernel_, *options_.projection, options_.threads, deadline);
  const GraphBuilt built{graph->chunks(), graph->bytes()};
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.segment == segment) found->second.graph = std::move(graph);
  return built;
}

void Index::dropSegment(uint64_t id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
}

Segment& Index::recordSegment(const LifeChange& change) const {
  const auto found = entries_.find(change.segmentId);
  if (found == entries_.end() || found->second.segment == nullptr) throw unknownSegment(change.segmentId);
  require(change.record < found->second.segment->recordCount(), "records holds a number that the segment lacks");
  return *found->second.segment;
}

void Index::loadLives(std::span<const LifeLoad> lives) {
  const std::lock_guard lock(mutex_);
  for (const LifeLoad& life : lives) {
    const Segment& segment = recordSegment(life.at);
    if (segment.record(life.at.record).versionId != life.versionId) {
      throw Error(ErrorCode::corrupt, segment.path() + ": record " + std::to_string(life.at.record) +
                                          " holds another document version");
    }
  }
  for (const LifeLoad& life : lives) {
    Life& loaded = recordSegment(life.at).life(life.at.record);
    loaded.setBorn(life.born);
    loaded.setDied(life.died);
  }
}

void Index::publish(uint64_t generation, std::span<const LifeChange> born, std::span<const LifeChange> died) {
  const std::lock_guard lock(mutex_);
  require(generation > published_, "generation must be greater than the last one published");
  for (const LifeChange& change : born) recordSegment(change);
  for (const LifeChange& change : died) recordSegment(change);
  for (const LifeChange& change : born) recordSegment(change).life(change.record).setBorn(generation);
  for (const LifeChange& change : died) recordSegment(change).life(change.record).setDied(generation);
  published_ = generation;
}

std::vector<SegmentSnapshot> Index::snapshot() const {
  std::vector<SegmentSnapshot> snapshots;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.segment == nullptr) continue;
    const uint32_t records = entry.segment->recordCount();
    snapshots.push_back({entry.segment, entry.graph, entry.segment->mapping(), records});
  }
  return snapshots;
}

SegmentInfo Index::describe(uint64_t id, const Entry& entry) {
  return {id, entry.segment->counts(), entry.graph != nullptr};
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
