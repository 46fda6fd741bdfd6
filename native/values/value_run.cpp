#include "values/value_run.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <ranges>
#include <utility>

namespace maxsimd {
namespace {

/// A block ends when it has so many places.
constexpr size_t blockPlaces = 16'384;
constexpr size_t blockHeaderBytes = 4;

void putLength(std::vector<uint8_t>& bytes, uint32_t length) {
  for (; length >= 0x80; length >>= 7) bytes.push_back(uint8_t(length | 0x80));
  bytes.push_back(uint8_t(length));
}

/// Takes a length off the front; false if there is none.
bool takeLength(std::span<const uint8_t>& bytes, uint32_t& length) {
  length = 0;
  for (uint32_t shift = 0; shift < 32 && !bytes.empty(); shift += 7) {
    const uint8_t byte = bytes.front();
    bytes = bytes.subspan(1);
    length |= uint32_t(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

uint16_t halfAt(std::span<const uint8_t> bytes, size_t offset) {
  return uint16_t(bytes[offset] | bytes[offset + 1] << 8);
}

size_t padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

std::optional<std::string> dateOf(std::string_view key) {
  return key >= stringKeys && key < otherKeys ? dateKeyOfText(key.substr(1)) : std::nullopt;
}

void setPlaces(Bitmap& records, std::span<const ValuePlace> places, bool inArray) {
  for (const ValuePlace place : places) {
    if (place.inArray() == inArray && place.record() < records.size()) records.set(place.record());
  }
}

/// The places of records that are copied, with their new numbers.
std::span<const ValuePlace> renumbered(std::span<const ValuePlace> places, std::span<const uint32_t> numbers,
                                       std::vector<ValuePlace>& buffer) {
  if (numbers.empty()) return places;
  buffer.clear();
  for (const ValuePlace place : places) {
    const uint32_t number = place.record() < numbers.size() ? numbers[place.record()] : RunSource::left;
    if (number != RunSource::left) buffer.emplace_back(number, place.inArray());
  }
  return buffer;
}

template <typename Fill>
std::shared_ptr<const ValueRun> writtenInMemory(const Fill& fill) {
  std::vector<uint8_t> blocks;
  RunWriter writer([&blocks](std::span<const uint8_t> part) { blocks.insert(blocks.end(), part.begin(), part.end()); });
  fill(writer);
  RunIndex index = writer.finish();
  return std::make_shared<const ValueRun>(std::move(index), std::move(blocks));
}

}  // namespace

void RunWriter::add(std::string_view key, std::span<const ValuePlace> places) {
  if (places.empty()) return;
  const bool isFull = pending_.size() == ValueRun::Cursor::entriesMax || places_.size() >= blockPlaces;
  if (isFull) writeBlock();
  if (pending_.empty() || key != lastKey_) {
    pending_.push_back({uint32_t(key.size()), 0});
    keys_ += key;
    lastKey_ = key;
  }
  pending_.back().places += uint32_t(places.size());
  places_.insert(places_.end(), places.begin(), places.end());
}

RunIndex RunWriter::finish() {
  if (!pending_.empty()) writeBlock();
  return std::move(index_);
}

void RunWriter::writeBlock() {
  noteDates();
  std::vector<uint8_t> head(blockHeaderBytes);
  for (const Pending& entry : pending_) {
    putLength(head, entry.keyBytes);
    putLength(head, entry.places);
  }
  const auto entries = uint16_t(pending_.size()), lengths = uint16_t(head.size() - blockHeaderBytes);
  head[0] = uint8_t(entries), head[1] = uint8_t(entries >> 8);
  head[2] = uint8_t(lengths), head[3] = uint8_t(lengths >> 8);
  head.insert(head.end(), keys_.begin(), keys_.end());
  head.resize(padded(head.size()));
  const std::span<const uint8_t> places(reinterpret_cast<const uint8_t*>(places_.data()),
                                        places_.size() * sizeof(ValuePlace));
  write_(head);
  write_(places);
  index_.blocks.push_back(index_.bytes);
  index_.entries += pending_.size();
  index_.items += places_.size();
  index_.bytes += head.size() + places.size();
  keys_.clear();
  pending_.clear();
  places_.clear();
}

void RunWriter::noteDates() {
  std::optional<std::string> first, last;
  bool isInOrder = true;
  size_t at = 0;
  for (const Pending& entry : pending_) {
    auto date = dateOf(std::string_view(keys_).substr(at, entry.keyBytes));
    at += entry.keyBytes;
    isInOrder = isInOrder && date && (!last || *date >= *last);
    if (!date) continue;
    if (!first || *date < *first) first = date;
    if (!last || *date > *last) last = std::move(date);
  }
  if (!first) return;
  DateZone& zone = index_.dates.emplace_back();
  zone.block = uint32_t(index_.blocks.size());
  zone.isInOrder = isInOrder;
  std::ranges::copy(*first, zone.first.begin());
  std::ranges::copy(*last, zone.last.begin());
}

ValueRun::ValueRun(RunIndex index, std::vector<uint8_t> blocks)
    : index_(std::move(index)), owned_(std::move(blocks)) {
  owned_.shrink_to_fit();
  blocks_ = owned_;
}

ValueRun::ValueRun(RunIndex index, std::shared_ptr<const Mapping> mapping, uint64_t offset)
    : index_(std::move(index)),
      mapping_(std::move(mapping)),
      blocks_(mapping_->whole().subspan(offset, index_.bytes)) {}

std::shared_ptr<const ValueRun> ValueRun::of(std::vector<Value> values) {
  std::ranges::sort(values, [](const Value& a, const Value& b) {
    const int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : a.place < b.place;
  });
  return writtenInMemory([&values](RunWriter& writer) {
    std::vector<ValuePlace> places;
    for (size_t first = 0, next = 0; first < values.size(); first = next) {
      places.clear();
      for (; next < values.size() && values[next].key == values[first].key; ++next) {
        // An array that has a value twice counts once.
        if (places.empty() || places.back() != values[next].place) places.push_back(values[next].place);
      }
      writer.add(values[first].key, places);
    }
  });
}

void mergeRuns(std::span<const RunSource> sources, RunWriter& writer) {
  std::vector<ValueRun::Cursor> cursors;
  for (const RunSource& source : sources) cursors.emplace_back(*source.run);
  const auto isLater = [&cursors](size_t a, size_t b) {
    const int order = cursors[a].key().compare(cursors[b].key());
    return order != 0 ? order > 0 : a > b;
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(isLater)> order(isLater);
  for (size_t c = 0; c < cursors.size(); ++c) {
    if (!cursors[c].atEnd()) order.push(c);
  }
  std::vector<ValuePlace> buffer;
  while (!order.empty()) {
    const size_t least = order.top();
    order.pop();
    ValueRun::Cursor& cursor = cursors[least];
    writer.add(cursor.key(), renumbered(cursor.places(), sources[least].numbers, buffer));
    cursor.next();
    if (!cursor.atEnd()) order.push(least);
  }
}

std::shared_ptr<const ValueRun> mergedInMemory(std::span<const RunSource> sources) {
  return writtenInMemory([sources](RunWriter& writer) { mergeRuns(sources, writer); });
}

uint64_t ValueRun::bytes() const {
  return sizeof *this + owned_.capacity() + index_.blocks.capacity() * sizeof(uint64_t) +
         index_.dates.capacity() * sizeof(DateZone);
}

std::span<const uint8_t> ValueRun::block(size_t number) const {
  const uint64_t begin = index_.blocks[number];
  const uint64_t end = number + 1 < index_.blocks.size() ? index_.blocks[number + 1] : blocks_.size();
  return blocks_.subspan(begin, end - begin);
}

/// Empty if its bytes cannot be read any more.
std::string_view ValueRun::firstKey(size_t number) const {
  const auto bytes = block(number);
  const size_t lengths = halfAt(bytes, 2);
  if (blockHeaderBytes + lengths > bytes.size()) return {};
  auto left = bytes.subspan(blockHeaderBytes, lengths);
  uint32_t keyBytes;
  if (!takeLength(left, keyBytes) || keyBytes > bytes.size() - blockHeaderBytes - lengths) return {};
  return {reinterpret_cast<const char*>(bytes.data()) + blockHeaderBytes + lengths, keyBytes};
}

void ValueRun::Cursor::read() {
  for (entries_ = at_ = 0; !atEnd(); ++block_) {
    if (readBlock()) return;
  }
  entries_ = 0;
}

/// False if the block has no entries, or its bytes cannot be read any more.
bool ValueRun::Cursor::readBlock() {
  const auto bytes = run_->block(block_);
  const size_t entries = halfAt(bytes, 0), lengths = halfAt(bytes, 2);
  if (entries == 0 || entries > entriesMax || blockHeaderBytes + lengths > bytes.size()) return false;
  auto left = bytes.subspan(blockHeaderBytes, lengths);
  uint64_t keyEnd = 0, placeEnd = 0;
  for (size_t e = 0; e < entries; ++e) {
    uint32_t keyBytes, places;
    if (!takeLength(left, keyBytes) || !takeLength(left, places)) return false;
    keyEnds_[e] = uint32_t(keyEnd += keyBytes);
    placeEnds_[e] = uint32_t(placeEnd += places);
    if (keyEnd > bytes.size() || placeEnd > bytes.size()) return false;
  }
  const size_t keysAt = blockHeaderBytes + lengths, placesAt = padded(keysAt + keyEnd);
  if (placesAt + placeEnd * sizeof(ValuePlace) > bytes.size()) return false;
  keys_ = reinterpret_cast<const char*>(bytes.data()) + keysAt;
  places_ = reinterpret_cast<const ValuePlace*>(bytes.data() + placesAt);
  entries_ = entries;
  return true;
}

std::string_view ValueRun::Cursor::keyAt(size_t entry) const {
  const uint32_t begin = entry == 0 ? 0 : keyEnds_[entry - 1];
  return {keys_ + begin, keyEnds_[entry] - begin};
}

std::span<const ValuePlace> ValueRun::Cursor::places() const {
  const uint32_t begin = at_ == 0 ? 0 : placeEnds_[at_ - 1];
  return {places_ + begin, placeEnds_[at_] - begin};
}

void ValueRun::addTo(Bitmap& records, Compared compared, const KeyRange& range) const {
  if (compared == Compared::dates) return addDates(records, range);
  const auto isBelow = [&range](std::string_view key) { return range.isBelow(key); };
  const auto numbers = std::views::iota(size_t(0), index_.blocks.size());
  const size_t behind = *std::ranges::partition_point(numbers, [&](size_t b) { return isBelow(firstKey(b)); });
  // The range may begin within the block before.
  Cursor entry(*this, behind == 0 ? 0 : behind - 1);
  for (entry.moveTo(entry.firstNot(isBelow)); !entry.atEnd() && !range.isAbove(entry.key()); entry.next()) {
    const bool isCompared = compared == Compared::prefix || !isCut(entry.key());
    if (isCompared) setPlaces(records, entry.places(), compared == Compared::items);
  }
}

void ValueRun::addDates(Bitmap& records, const KeyRange& range) const {
  const auto isBelow = [&range](std::string_view key) {
    const auto date = dateOf(key);
    return date && range.isBelow(*date);
  };
  const auto isNotAbove = [&range](std::string_view key) {
    const auto date = dateOf(key);
    return date && !range.isAbove(*date);
  };
  for (const DateZone& zone : index_.dates) {
    const std::string_view first(zone.first.data(), zone.first.size()), last(zone.last.data(), zone.last.size());
    if (range.isBelow(last) || range.isAbove(first)) continue;
    Cursor entry(*this, zone.block);
    if (zone.isInOrder) {
      const size_t begin = range.isBelow(first) ? entry.firstNot(isBelow) : 0;
      const size_t end = range.isAbove(last) ? entry.firstNot(isNotAbove) : entry.entries();
      entry.moveTo(begin);
      for (size_t e = begin; e < end; ++e, entry.next()) setPlaces(records, entry.places(), false);
      continue;
    }
    for (; entry.block() == zone.block; entry.next()) {
      if (isNotAbove(entry.key()) && !isBelow(entry.key())) setPlaces(records, entry.places(), false);
    }
  }
}

}  // namespace maxsimd
