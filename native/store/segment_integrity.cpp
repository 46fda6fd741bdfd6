// Checks a segment's records, through mappings that may fail.
#include "store/segment.h"

#include "files/error.h"

#include <algorithm>
#include <ranges>

namespace maxsimd {

bool Segment::check(const Mapping& mapping, uint32_t record, Check good, Check bad) const {
  const uint8_t known = checks_[record].load(std::memory_order_relaxed);
  if (known & bad) return false;
  if (known & good) return true;
  std::vector<AbsentPart> absent;
  collectAbsent(record, absent);
  if (!absent.empty()) throw AbsentParts(std::move(absent));
  const RecordView view = this->view(mapping, record);
  const bool intact = isDescribed(view, record) && (good == metaGood ? view.metaIntact() : view.dataIntact());
  // The mapping failed, so its zeros say nothing about the record.
  if (mapping.failure()) return false;
  checks_[record].fetch_or(intact ? good : bad, std::memory_order_relaxed);
  return intact;
}

bool Segment::isDescribed(const RecordView& view, uint32_t record) const {
  const RecordEntry& entry = records_[record];
  const RecordHeader& header = view.header();
  return header.magic == recordMagic && header.bytes == view.layout.bytes && header.versionId == entry.versionId &&
         header.chunks == entry.chunks && header.rows == entry.rows && header.terms == entry.terms &&
         header.rangeBytes == entry.rangeBytes;
}

bool Segment::metaIntact(const Mapping& mapping, uint32_t record) const {
  return check(mapping, record, metaGood, metaBad);
}

bool Segment::dataIntact(const Mapping& mapping, uint32_t record) const {
  return check(mapping, record, dataGood, dataBad);
}

std::vector<uint32_t> Segment::damagedBelow(uint32_t recordCount) const {
  std::vector<uint32_t> damaged;
  for (uint32_t r = 0; r < recordCount; ++r) {
    if (knownDamaged(r)) damaged.push_back(r);
  }
  return damaged;
}

std::vector<uint8_t> Segment::read(const Mapping& mapping, uint32_t record) const {
  if (!metaIntact(mapping, record) || !dataIntact(mapping, record)) throw unread(mapping, record);
  const RecordView view = this->view(mapping, record);
  std::vector<uint8_t> bytes(view.bytes, view.bytes + view.layout.bytes);
  requireRead(mapping);
  return bytes;
}

uint32_t Segment::recordAt(uint64_t offset) const {
  const auto all = std::views::iota(0u, recordCount());
  const auto behind = std::ranges::partition_point(all, [&](uint32_t r) { return records_[r].offset <= offset; });
  return std::max(1u, uint32_t(behind - all.begin())) - 1;
}

void Segment::requireRead(const Mapping& mapping) const {
  if (mapping.failure()) throw unread(mapping, 0);
}

UnreadRecord Segment::unread(const Mapping& mapping, uint32_t record) const {
  if (const auto at = mapping.failure()) {
    return {ErrorCode::io, path() + ": cannot be read at byte " + std::to_string(*at), id_, recordAt(*at)};
  }
  return {ErrorCode::corrupt, path() + ": damaged record " + std::to_string(record), id_, record};
}

Segment::Verified Segment::verify(uint32_t record) {
  const Verified found = readAgain(record);
  if (record < recordCount()) checks_[record].store(found.damage.empty() ? 0 : metaBad | dataBad);
  replaceFailedMapping(found.damage.empty());
  return found;
}

Segment::Verified Segment::readAgain(uint32_t record) const {
  try {
    if (sealed()) {
      const auto footer = readFooter(file_, file_.size(), shape_);
      if (!footer || footer->crc != footerCrc_) return {path() + ": its directory is not what it was", true};
    }
    if (record >= recordCount()) return {};
    const RecordEntry& entry = records_[record];
    const auto layout = RecordLayout::of(shape_, entry);
    mapping()->release(entry.offset, layout.bytes);
    file_.forget(entry.offset, layout.bytes);
    std::vector<uint8_t> bytes(layout.bytes);
    file_.read(entry.offset, bytes.data(), bytes.size());
    const RecordView view{bytes.data(), layout};
    if (isDescribed(view, record) && view.metaIntact() && view.dataIntact()) return {};
    return {path() + ": damaged record " + std::to_string(record)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) {
      // Perhaps the whole disk is unavailable: read the header to find out.
      file_.forget(0, sizeof(FileHeader));
      FileHeader header;
      file_.read(0, &header, sizeof header);
    } else if (error.code() != ErrorCode::corrupt) {
      throw;
    }
    return {error.what()};
  }
}

void Segment::replaceFailedMapping(bool intact) {
  std::unique_lock lock(writing_, std::defer_lock);
  // Nobody else sets the mapping of a sealed segment.
  if (!sealed()) lock.lock();
  const auto failed = mapping();
  if (!failed->failure()) return;
  // Searches read a little past the last record of an active segment.
  if (intact && !sealed() && file_.size() < failed->bytes()) file_.truncate(failed->bytes());
  setMapping(file_.map(failed->bytes()));
}

}  // namespace maxsimd
