#include "index/field_values.h"

#include "files/error.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace maxsimd {
namespace {

constexpr size_t unsortedMin = 4096;
constexpr size_t lengthBytes = 2;

uint64_t prefixOf(std::string_view key) {
  uint64_t prefix = 0;
  for (size_t b = 0; b < sizeof prefix; ++b) prefix = prefix << 8 | (b < key.size() ? uint8_t(key[b]) : 0);
  return prefix;
}

}  // namespace

std::string columnName(Compared compared, const std::string& field) { return char(compared) + field; }

std::string_view FieldColumn::keyOf(const Entry& entry) const {
  const char* const at = keys_.data() + entry.begin;
  return {at + lengthBytes, size_t(uint8_t(at[0])) << 8 | uint8_t(at[1])};
}

bool FieldColumn::isBefore(const Entry& a, const Entry& b) const {
  return a.prefix != b.prefix ? a.prefix < b.prefix : keyOf(a) < keyOf(b);
}

void FieldColumn::add(uint32_t record, std::span<const std::string> keys) {
  if (known_.size() <= record) known_.resize(std::max(record + 1, known_.size() * 2));
  for (const std::string& key : keys) add(record, key);
  known_.set(record);
}

void FieldColumn::add(uint32_t record, const std::string& key) {
  if (keys_.size() + lengthBytes + key.size() > UINT32_MAX) {
    throw Error(ErrorCode::noMemory, "a segment holds too many values of a field");
  }
  entries_.push_back({prefixOf(key), uint32_t(keys_.size()), record});
  keys_.push_back(char(key.size() >> 8));
  keys_.push_back(char(key.size() & 0xff));
  keys_.insert(keys_.end(), key.begin(), key.end());
  const size_t unsorted = entries_.size() - sorted_;
  if (unsorted < std::max(unsortedMin, sorted_ / 4)) return;
  const auto before = [this](const Entry& a, const Entry& b) { return isBefore(a, b); };
  std::sort(entries_.begin() + long(sorted_), entries_.end(), before);
  std::inplace_merge(entries_.begin(), entries_.begin() + long(sorted_), entries_.end(), before);
  sorted_ = entries_.size();
}

void FieldColumn::addTo(Bitmap& records, const KeyRange& range) const {
  const auto add = [&records](const Entry& entry) {
    if (entry.record < records.size()) records.set(entry.record);
  };
  const uint64_t lowPrefix = prefixOf(range.low), highPrefix = prefixOf(range.high);
  const auto isBelow = [&](const Entry& entry) {
    return entry.prefix != lowPrefix ? entry.prefix < lowPrefix : range.isBelow(keyOf(entry));
  };
  const auto isNotAbove = [&](const Entry& entry) {
    return entry.prefix != highPrefix ? entry.prefix < highPrefix : !range.isAbove(keyOf(entry));
  };
  const auto sortedEnd = entries_.begin() + long(sorted_);
  const auto first = std::partition_point(entries_.begin(), sortedEnd, isBelow);
  const auto last = std::partition_point(first, sortedEnd, isNotAbove);
  std::for_each(first, last, add);
  std::for_each(sortedEnd, entries_.end(), [&](const Entry& entry) {
    if (!isBelow(entry) && isNotAbove(entry)) add(entry);
  });
}

bool FieldColumn::isComplete(uint32_t records, const std::function<bool(uint32_t)>& isNeeded) const {
  for (uint32_t word = 0; word * Bitmap::wordBits < records; ++word) {
    const uint32_t first = word * Bitmap::wordBits;
    if (first + Bitmap::wordBits <= known_.size() && known_.word(word) == ~uint64_t(0)) continue;
    const uint32_t end = std::min(first + Bitmap::wordBits, records);
    for (uint32_t record = first; record < end; ++record) {
      if (!known_.test(record) && isNeeded(record)) return false;
    }
  }
  return true;
}

std::vector<uint32_t> FieldValues::lacking(std::span<const std::string> names, uint32_t records,
                                           const std::function<bool(uint32_t)>& isNeeded) const {
  const std::shared_lock lock(mutex_);
  std::vector<const FieldColumn*> columns;
  for (const std::string& name : names) {
    const auto found = columns_.find(name);
    columns.push_back(found == columns_.end() ? nullptr : &found->second);
  }
  std::vector<uint32_t> lacking;
  for (uint32_t record = 0; record < records; ++record) {
    const auto isUnknown = [record](const FieldColumn* column) { return column == nullptr || !column->knows(record); };
    if (std::any_of(columns.begin(), columns.end(), isUnknown) && isNeeded(record)) lacking.push_back(record);
  }
  return lacking;
}

void FieldValues::add(std::span<const std::string> names, std::span<const uint32_t> records,
                      std::span<const std::string> objects) {
  const std::unique_lock lock(mutex_);
  makeColumns(names);
  for (size_t r = 0; r < records.size(); ++r) {
    std::map<std::string, std::string_view> values;
    for (const JsonMember& member : membersOf(objects[r])) values[stringOf(member.name)] = member.value;
    for (const std::string& name : names) {
      FieldColumn& column = columns_[name];
      if (column.knows(records[r])) continue;
      const auto value = values.find(name.substr(1));
      if (value == values.end()) column.add(records[r], std::span<const std::string>());
      else column.add(records[r], keysOf(Compared(name.front()), value->second));
    }
  }
  account();
}

/// Makes missing columns. If there are too many, drops those that were used longest ago.
void FieldValues::makeColumns(std::span<const std::string> names) {
  for (const std::string& name : names) touch(columns_[name]);
  while (columns_.size() > std::max(columnsMax, names.size())) {
    columns_.erase(std::min_element(columns_.begin(), columns_.end(),
                                    [](const auto& a, const auto& b) { return a.second.usedAt < b.second.usedAt; }));
  }
}

void FieldValues::account() {
  uint64_t bytes = 0;
  for (const auto& [name, column] : columns_) bytes += column.bytes();
  memory_.count(bytes);
}

void FieldValues::reclaim(const MemoryNeed& need) {
  const std::unique_lock lock(mutex_);
  std::erase_if(columns_, [&](const auto& column) {
    const auto named = std::find(need.columns.begin(), need.columns.end(), column.first);
    return need.index != index_ || named == need.columns.end();
  });
  account();
}

bool FieldValues::addTo(Bitmap& records, const std::string& column, const KeyRange& range,
                        const std::function<bool(uint32_t)>& isNeeded) const {
  const std::shared_lock lock(mutex_);
  const auto found = columns_.find(column);
  if (found == columns_.end() || !found->second.isComplete(records.size(), isNeeded)) return false;
  touch(found->second);
  found->second.addTo(records, range);
  return true;
}

}  // namespace maxsimd
