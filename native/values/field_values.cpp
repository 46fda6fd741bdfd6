#include "values/field_values.h"


#include <algorithm>
#include <utility>

namespace maxsimd {
namespace {

void appendEntries(std::vector<ValueRun::Entry>& entries, const FieldColumn::RecordValue& value) {
  const auto append = [&](std::string_view token, bool inArray) {
    entries.push_back({cutKey(valueKey(token)), ValuePlace(value.record, inArray)});
  };
  if (value.token.front() != '[') return append(value.token, false);
  for (const std::string_view item : itemsOf(value.token)) append(item, true);
}

}  // namespace

bool FieldColumn::isComplete(uint32_t records, const IsNeeded& isNeeded) const {
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

void FieldColumn::addTo(Bitmap& records, Compared compared, const KeyRange& range) const {
  if (compared == Compared::presence) {
    present_.forEach(0, records.size(), [&records](uint32_t record) { records.set(record); });
    return;
  }
  for (const auto& run : runs_) run->addTo(records, compared, range);
}

uint64_t FieldColumn::bytes() const {
  uint64_t bytes = (known_.size() + present_.size()) / 8;
  for (const auto& run : runs_) bytes += run->bytes();
  return bytes;
}

FieldColumn FieldColumn::with(std::span<const RecordValue> values) const {
  FieldColumn next = *this;
  std::vector<ValueRun::Entry> entries;
  for (const RecordValue& value : values) {
    const uint32_t size = std::max(value.record + 1, next.known_.size());
    if (size > next.known_.size()) {
      next.known_.resize(size);
      next.present_.resize(size);
    }
    next.known_.set(value.record);
    if (value.token.empty()) continue;
    next.present_.set(value.record);
    appendEntries(entries, value);
  }
  if (!entries.empty()) next.addRun(ValueRun::of(std::move(entries)));
  return next;
}

void FieldColumn::addRun(std::shared_ptr<const ValueRun> run) {
  while (!runs_.empty() && runs_.back()->items() < 2 * run->items() &&
         runs_.back()->items() + run->items() <= mergedItemsMax) {
    run = ValueRun::merged(*runs_.back(), *run);
    runs_.pop_back();
  }
  runs_.push_back(std::move(run));
}

std::shared_ptr<const FieldColumn> FieldValues::find(const std::string& field) const {
  const std::shared_lock lock(mutex_);
  const auto found = columns_.find(field);
  if (found == columns_.end()) return nullptr;
  found->second.usedAt = ++uses_;
  return found->second.column;
}

std::vector<uint32_t> FieldValues::lacking(std::span<const std::string> fields, uint32_t records,
                                           const IsNeeded& isNeeded) const {
  std::vector<std::shared_ptr<const FieldColumn>> columns;
  for (const std::string& field : fields) columns.push_back(find(field));
  std::vector<uint32_t> lacking;
  for (uint32_t record = 0; record < records; ++record) {
    const auto isUnknown = [record](const auto& column) { return column == nullptr || !column->knows(record); };
    if (std::any_of(columns.begin(), columns.end(), isUnknown) && isNeeded(record)) lacking.push_back(record);
  }
  return lacking;
}

void FieldValues::add(std::span<const std::string> fields, std::span<const uint32_t> records,
                      std::span<const std::string> objects) {
  const std::lock_guard adding(adding_);
  std::vector<std::unordered_map<std::string, std::string_view>> values;
  for (const std::string& object : objects) values.push_back(valuesByName(object));
  for (const std::string& field : fields) {
    const auto known = find(field);
    std::vector<FieldColumn::RecordValue> added;
    for (size_t r = 0; r < records.size(); ++r) {
      if (known != nullptr && known->knows(records[r])) continue;
      const auto value = values[r].find(field);
      added.push_back({records[r], value == values[r].end() ? std::string_view() : value->second});
    }
    auto column = std::make_shared<const FieldColumn>((known ? *known : FieldColumn()).with(added));
    keep(field, std::move(column), std::max(columnsMax, fields.size()));
  }
}

/// Keeps a column in place of the one before it. If there are too many, drops the one that was used longest ago.
void FieldValues::keep(const std::string& field, std::shared_ptr<const FieldColumn> column, size_t columnsMost) {
  const std::unique_lock lock(mutex_);
  Kept& kept = columns_[field];
  kept.column = std::move(column);
  kept.usedAt = ++uses_;
  if (columns_.size() > columnsMost) {
    columns_.erase(std::min_element(columns_.begin(), columns_.end(),
                                    [](const auto& a, const auto& b) { return a.second.usedAt < b.second.usedAt; }));
  }
  account();
}

/// Called with the lock.
void FieldValues::account() {
  uint64_t bytes = 0;
  for (const auto& [field, kept] : columns_) bytes += kept.column->bytes();
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

std::shared_ptr<const FieldColumn> FieldValues::complete(const std::string& field, uint32_t records,
                                                         const IsNeeded& isNeeded) const {
  auto column = find(field);
  return column != nullptr && column->isComplete(records, isNeeded) ? column : nullptr;
}

}  // namespace maxsimd
