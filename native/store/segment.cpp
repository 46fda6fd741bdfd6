#include "store/segment.h"

#include "kernels/contract.h"
#include "files/error.h"
#include "store/recent_terms.h"
#include "store/sections.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace maxsimd {
namespace {

constexpr uint64_t allocationFirst = 256 << 10;
constexpr uint64_t allocationStepMax = 2 << 20;
constexpr uint64_t pageBytes = 4096;
static_assert(sizeof(FileTrailer) >= readPaddingBytes && sectionAlignment >= readPaddingBytes);

uint64_t alignPage(uint64_t bytes) { return (bytes + pageBytes - 1) & ~(pageBytes - 1); }

bool chunksAddUp(const RecordView& view) {
  uint64_t rows = 0;
  for (uint32_t c = 0; c < view.header().chunks; ++c) {
    if (view.chunkRows()[c] == 0) return false;
    rows += view.chunkRows()[c];
  }
  return rows == view.header().rows;
}

FileHeader checkFileHeader(const File& file, uint64_t id, RowShape shape, uint64_t bytes) {
  const FileHeader header = readFileHeader(file, bytes);
  if (header.segmentId != id) throw Error(ErrorCode::corrupt, file.path() + ": another segment's file");
  // The header is intact, so the caller named the wrong file.
  if (header.shape() != shape) {
    throw Error(ErrorCode::invalidArgument, file.path() + ": holds token vectors of another size");
  }
  return header;
}

}  // namespace

FileHeader readFileHeader(const File& file, uint64_t bytes) {
  const auto damaged = [&file](const char* what) { return Error(ErrorCode::corrupt, file.path() + ": " + what); };
  if (bytes < sizeof(FileHeader)) throw damaged("shorter than a segment header");
  FileHeader header;
  file.read(0, &header, sizeof header);
  if (header.magic != fileMagic) throw damaged("not a segment file");
  if (header.version < rangelessVersion || header.version > formatVersion) {
    throw Error(ErrorCode::unsupportedVersion,
                file.path() + ": segment format " + std::to_string(header.version) + " is not supported");
  }
  if (header.crc != headerChecksum(header)) throw damaged("damaged segment header");
  const bool fewBits = header.fewBits != 0;
  if (header.dim < 1 || header.dim > dimMax || !isRowBits(header.shape().bits) || header.fewBits == 8 ||
      (header.version != formatVersion && fewBits != (header.version == rangelessFewBitsVersion))) {
    throw damaged("token vectors of an impossible size");
  }
  return header;
}

Segment::Segment(uint64_t id, RowShape shape, std::string path, File file, MemoryOwner owner)
    : id_(id), shape_(shape), path_(std::move(path)), owner_(std::move(owner)), file_(std::move(file)) {}

std::shared_ptr<Segment> Segment::create(uint64_t id, const std::string& path, RowShape shape, MemoryOwner owner) {
  std::shared_ptr<Segment> segment(new Segment(id, shape, path, File::create(path), std::move(owner)));
  try {
    FileHeader header{};
    header.magic = fileMagic;
    header.version = formatVersion;
    header.segmentId = id;
    header.dim = shape.dim;
    header.fewBits = shape.bits == 8 ? 0 : shape.bits;
    header.crc = headerChecksum(header);
    segment->reserve(sizeof header);
    segment->file_.write(0, &header, sizeof header);
    segment->end_ = sizeof header;
    segment->recentTerms_ = std::make_shared<RecentTerms>(segment->owner_);
    segment->file_.sync();
    syncDirectoryOf(path);
  } catch (...) {
    unlink(path.c_str());
    throw;
  }
  return segment;
}

std::shared_ptr<Segment> Segment::open(uint64_t id, const std::string& path, RowShape shape, uint32_t recordsReferenced,
                                       bool sealed, const PartialCopy* partial, MemoryOwner owner) {
  require(sealed || partial == nullptr, "only a sealed segment is fetched in parts");
  std::shared_ptr<Segment> segment(
      new Segment(id, shape, path, File::openExisting(partial == nullptr ? path : partial->path), std::move(owner)));
  const uint64_t bytes = segment->file_.size();
  if (partial != nullptr) {
    segment->file_.isBeingFetched(std::make_shared<PresentParts>(id, bytes, partial->partBytes, partial->parts));
  }
  segment->keepsRanges_ = checkFileHeader(segment->file_, id, shape, bytes).version == formatVersion;
  if (!sealed) {
    segment->openActive(recordsReferenced, bytes);
    return segment;
  }
  const auto footer = readFooter(segment->file_, bytes, shape);
  if (!footer) throw Error(ErrorCode::corrupt, path + ": the footer of a sealed segment is missing");
  if (footer->records.size() < recordsReferenced) {
    throw Error(ErrorCode::corrupt, path + ": fewer records than are referenced");
  }
  segment->openSealed(*footer, bytes);
  return segment;
}

void Segment::openSealed(const Footer& footer, uint64_t fileBytes) {
  const auto records = uint32_t(footer.records.size());
  const auto chunks = uint32_t(footer.chunks.size());
  growDirectory(records, chunks);
  for (uint32_t r = 0; r < records; ++r) {
    records_[r] = footer.records[r];
    termCount_ += footer.records[r].terms;
  }
  for (uint32_t c = 0; c < chunks; ++c) chunks_[c] = footer.chunks[c];
  fileBytes_ = fileBytes;
  chunkCount_ = chunks;
  rowCount_ = footer.rows;
  footerCrc_ = footer.crc;
  sealed_ = true;
  setMapping(file_.map(fileBytes));
  recordCount_.store(records, std::memory_order_release);
  sealedPostings_ = SealedPostings::open(path(), identity());
}

void Segment::openActive(uint32_t recordsReferenced, uint64_t fileBytes) {
  uint64_t offset = sizeof(FileHeader);
  const auto mapping = file_.map(fileBytes);
  for (uint32_t r = 0; r < recordsReferenced; ++r) {
    const RecordView view = viewRecord(mapping->base() + offset, fileBytes - offset, shape_);
    if (view.bytes == nullptr || !chunksAddUp(view) || view.header().chunks > UINT32_MAX - chunkCount_) {
      requireRead(*mapping);
      throw Error(ErrorCode::corrupt, file_.path() + ": damaged record " + std::to_string(r));
    }
    addRecord(view, offset);
    // It is not known yet whether a live version needs this record.
    if (!view.metaIntact() || !view.dataIntact()) checks_[r] = metaBad | dataBad;
    offset += view.layout.bytes;
  }
  // The rest of the file is cut below. Do not cut it because of zeros that stand for unreadable bytes.
  requireRead(*mapping);
  // Left over from a seal that did not finish.
  unlink(SealedPostings::pathOf(path()).c_str());
  // Cuts the tail and extends the file by a hole after the last record. The hole is readable and needs no free space
  // now.
  file_.truncate(offset);
  const uint64_t readable = alignPage(offset + readPaddingBytes);
  file_.truncate(readable);
  end_ = offset;
  allocated_ = offset;
  fileBytes_ = readable;
  setMapping(file_.map(readable));
  recentTerms_ = std::make_shared<RecentTerms>(owner_);
}

SegmentCounts Segment::counts() const {
  SegmentCounts counts{};
  counts.records = recordCount();
  counts.recordsLive = recordsLive_;
  counts.sealed = sealed();
  counts.keepsRanges = keepsRanges_;
  counts.chunks = chunkCount_;
  counts.rows = rowCount_;
  counts.termBytes = termCount_ * termBytes;
  counts.fileBytes = fileBytes_;
  const std::shared_lock lock(postingsMutex_);
  counts.postingBytes = sealedPostings_ == nullptr ? 0 : sealedPostings_->fileBytes();
  return counts;
}

void Segment::setLifespan(uint32_t record, uint64_t born, uint64_t died) {
  Lifespan& lifespan = lifespans_[record];
  const uint32_t before = lifespan.alive();
  lifespan.setBorn(born);
  lifespan.setDied(died);
  recordsLive_ += uint32_t(lifespan.alive()) - before;
}

void Segment::requireWritable() const {
  if (poisoned_) throw Error(ErrorCode::io, file_.path() + ": not written again after a failed sync", EIO);
  if (sealed_) throw Error(ErrorCode::invalidArgument, "segment " + std::to_string(id_) + " is sealed");
}

/// Allocates blocks for `bytes` and a vector of padding. The steps double, so that small segments stay small.
void Segment::reserve(uint64_t bytes) {
  const uint64_t needed = bytes + readPaddingBytes;
  if (needed <= allocated_) return;
  const uint64_t step = std::min(std::max(allocated_, allocationFirst), allocationStepMax);
  uint64_t target = alignPage(std::max(needed, allocated_ + step));
  try {
    file_.allocate(target);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::noSpace || target == alignPage(needed)) throw;
    target = alignPage(needed);
    file_.allocate(target);
  }
  setMapping(file_.map(target));
  allocated_ = target;
  fileBytes_ = target;
}

uint32_t Segment::append(std::span<const uint8_t> record) {
  const std::lock_guard lock(writing_);
  requireWritable();
  const RecordView view = viewRecord(record.data(), record.size(), shape_);
  if (view.bytes == nullptr) throw std::logic_error("this is a bug: append of bytes that are no record");
  require(keepsRanges_ || view.header().rangeBytes == 0, "a segment of an earlier format takes no ranges");
  const uint64_t chunksAfter = uint64_t(chunkCount_) + view.header().chunks;
  require(recordCount_ < UINT32_MAX && chunksAfter < UINT32_MAX, "segment holds too many chunks");
  reserve(end_ + record.size());
  file_.write(end_, record.data(), record.size());
  const uint32_t number = recordCount_;
  addRecord(view, end_);
  end_ += record.size();
  return number;
}

void Segment::growDirectory(uint32_t records, uint32_t chunks) {
  directory_.resize(decltype(records_)::bytesFor(records) + decltype(lifespans_)::bytesFor(records) +
                    decltype(checks_)::bytesFor(records) + decltype(chunks_)::bytesFor(chunks));
  records_.grow(records);
  lifespans_.grow(records);
  checks_.grow(records);
  chunks_.grow(chunks);
}

void Segment::addRecord(const RecordView& view, uint64_t offset) {
  const RecordHeader& header = view.header();
  const uint32_t number = recordCount_;
  const uint32_t firstChunk = chunkCount_;
  growDirectory(number + 1, firstChunk + header.chunks);
  RecordEntry& entry = records_[number];
  entry = {};
  entry.offset = offset;
  entry.versionId = header.versionId;
  entry.firstChunk = firstChunk;
  entry.chunks = header.chunks;
  entry.rows = header.rows;
  entry.terms = header.terms;
  entry.rangeBytes = header.rangeBytes;
  uint32_t row = 0;
  for (uint32_t c = 0; c < header.chunks; ++c) {
    chunks_[firstChunk + c] = {number, row};
    row += view.chunkRows()[c];
  }
  checks_[number] = metaGood | dataGood;
  chunkCount_ = firstChunk + header.chunks;
  rowCount_ += header.rows;
  termCount_ += header.terms;
  recordCount_.store(number + 1, std::memory_order_release);
}

void Segment::sync() {
  if (poisoned_) throw Error(ErrorCode::io, file_.path() + ": not written again after a failed sync", EIO);
  try {
    file_.sync();
  } catch (...) {
    poisoned_ = true;
    throw;
  }
}

void Segment::seal() {
  const std::lock_guard lock(writing_);
  requireWritable();
  const uint32_t records = recordCount_, chunks = chunkCount_;
  Directory directory;
  directory.rows = rowCount_;
  for (uint32_t r = 0; r < records; ++r) directory.records.push_back(records_[r]);
  for (uint32_t c = 0; c < chunks; ++c) directory.chunks.push_back(chunks_[c]);
  const FooterBytes footer = assembleFooter(end_, directory);
  reserve(footer.trailer.fileBytes);
  auto postings = SealedPostings::save(path(), {id_, records, footer.trailer.footerCrc}, collectPostings([] {}));
  file_.write(end_, footer.body.data(), footer.body.size());
  sync();
  try {
    file_.write(footer.trailer.fileBytes - sizeof(FileTrailer), &footer.trailer, sizeof(FileTrailer));
    file_.truncate(footer.trailer.fileBytes);
  } catch (...) {
    poisoned_ = true;  // a trailer may stand in the file: nothing may follow it
    throw;
  }
  sync();
  auto mapping = file_.map(footer.trailer.fileBytes);
  if (!readFooter(file_, mapping->bytes(), shape_)) {
    throw std::logic_error("this is a bug: a footer just written cannot be read");
  }
  {
    const std::unique_lock lock(postingsMutex_);
    sealedPostings_ = std::move(postings);
    recentTerms_ = nullptr;
    footerCrc_ = footer.trailer.footerCrc;
    setMapping(std::move(mapping));
    sealed_ = true;
  }
  fileBytes_ = footer.trailer.fileBytes;
}

void Segment::setMapping(std::shared_ptr<const Mapping> mapping) {
  mapping->expectScattered(true);
  const std::lock_guard lock(mappingMutex_);
  mapping_ = std::move(mapping);
}

std::shared_ptr<const Mapping> Segment::mapping() const {
  const std::lock_guard lock(mappingMutex_);
  return mapping_;
}

uint32_t Segment::chunkRows(uint32_t number) const {
  const ChunkEntry& entry = chunks_[number];
  const RecordEntry& record = records_[entry.record];
  const bool last = number + 1 == record.firstChunk + record.chunks;
  return (last ? record.rows : chunks_[number + 1].firstRow) - entry.firstRow;
}

RecordView Segment::view(const Mapping& mapping, uint32_t record) const {
  const RecordEntry& entry = records_[record];
  return {mapping.base() + entry.offset, RecordLayout::of(shape_, entry)};
}

void Segment::addParts(std::span<const uint8_t> bits) {
  if (file_.parts() != nullptr) file_.parts()->add(bits);
}

void Segment::collectAbsent(uint32_t record, std::vector<AbsentPart>& absent) const {
  if (file_.parts() == nullptr) return;
  const RecordEntry& entry = records_[record];
  const auto layout = RecordLayout::of(shape_, entry);
  file_.parts()->collectAbsent(entry.offset, layout.bytes, absent);
}

}  // namespace maxsimd
