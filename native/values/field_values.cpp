#include "values/field_values.h"

#include "files/error.h"
#include "values/field_tokens.h"

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <utility>

namespace maxsimd {
namespace {

/// A column that is kept as a file takes no more in memory while it is made, together with the other fields of a load.
constexpr uint64_t makingBytesMax = uint64_t(8) << 20;

void appendValues(std::vector<ValueRun::Value>& values, const FieldColumn::RecordValue& value) {
  const auto append = [&](std::string_view token, bool inArray) {
    values.push_back({cutKey(valueKey(token)), ValuePlace(value.record, inArray)});
  };
  if (value.token.front() != '[') return append(value.token, false);
  for (const std::string_view item : itemsOf(value.token)) append(item, true);
}

Bitmap resized(Bitmap bitmap, uint32_t bits) {
  bitmap.resize(bits);
  return bitmap;
}

/// Where the file cannot be written, the column stays in memory.
FieldColumn spilledIfPossible(FieldColumn column, const ColumnPlace& place, const std::string& field) {
  try {
    return column.spilled(place, field);
  } catch (const Error&) {
    return column;
  }
}

/// Writes the file of each field. Throws the first failure if none was written.
template <typename Write>
std::vector<std::string> writtenOf(const auto& fields, const Write& write) {
  std::vector<std::string> written;
  std::exception_ptr failure;
  for (const std::string& field : fields) {
    try {
      if (write(field)) written.push_back(columnEnding(field));
    } catch (const Error&) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (written.empty() && failure != nullptr) std::rethrow_exception(failure);
  return written;
}

}  // namespace

FieldColumn::FieldColumn(StoredColumn stored)
    : runs_{std::move(stored.run)},
      known_(std::move(stored.known)),
      present_(std::move(stored.present)),
      inFile_(known_.count()) {}

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
  std::vector<ValueRun::Value> added;
  for (const RecordValue& value : values) {
    if (value.record >= next.known_.size()) {
      next.known_.resize(value.record + 1);
      next.present_.resize(value.record + 1);
    }
    next.known_.set(value.record);
    if (value.token.empty()) continue;
    next.present_.set(value.record);
    appendValues(added, value);
  }
  if (!added.empty()) next.addRun(ValueRun::of(std::move(added)));
  return next;
}

void FieldColumn::addRun(std::shared_ptr<const ValueRun> run) {
  while (!runs_.empty() && !runs_.back()->isMapped() && runs_.back()->items() < 2 * run->items() &&
         runs_.back()->items() + run->items() <= mergedItemsMax) {
    run = mergedInMemory(std::array{RunSource{runs_.back(), {}}, RunSource{std::move(run), {}}});
    runs_.pop_back();
  }
  runs_.push_back(std::move(run));
}

uint64_t FieldColumn::unfiledBytes() const {
  uint64_t bytes = 0;
  for (const auto& run : runs_) bytes += run->isMapped() ? 0 : run->bytes();
  return bytes;
}

FieldColumn FieldColumn::spilled(const ColumnPlace& place, const std::string& field) const {
  const auto isMapped = [](const auto& run) { return run->isMapped(); };
  const bool isWhole = std::ranges::count_if(runs_, isMapped) >= long(mappedRunsMax);
  FieldColumn next = *this;
  next.runs_.clear();
  std::vector<RunSource> together;
  for (const auto& run : runs_) {
    if (isMapped(run) && !isWhole) next.runs_.push_back(run);
    else together.push_back({run, {}});
  }
  if (!together.empty()) next.runs_.push_back(spilledRun(place, field, together));
  return next;
}

bool FieldColumn::failed() const {
  return std::ranges::any_of(runs_, [](const auto& run) { return run->failed(); });
}

void FieldValues::keepFiles(ColumnPlace place) {
  const std::unique_lock lock(mutex_);
  place_ = std::move(place);
}

std::optional<ColumnPlace> FieldValues::place() const {
  const std::shared_lock lock(mutex_);
  return place_;
}

std::shared_ptr<const FieldColumn> FieldValues::find(const std::string& field) const {
  const std::shared_lock lock(mutex_);
  const auto found = columns_.find(field);
  if (found == columns_.end() || found->second.column->failed()) return nullptr;
  found->second.usedAt = ++uses_;
  return found->second.column;
}

std::shared_ptr<const FieldColumn> FieldValues::findOrOpen(const std::string& field, size_t fields) {
  if (auto column = find(field)) return column;
  const auto files = place();
  auto stored = files ? openColumn(*files, field) : std::nullopt;
  if (!stored) return nullptr;
  // Another thread may have made one meanwhile, with more records.
  const std::lock_guard making(making_);
  if (auto column = find(field)) return column;
  auto column = std::make_shared<const FieldColumn>(std::move(*stored));
  keep(field, column, fields);
  return column;
}

std::vector<uint32_t> FieldValues::lacking(std::span<const std::string> fields, uint32_t records,
                                           const IsNeeded& isNeeded) {
  std::vector<std::shared_ptr<const FieldColumn>> columns;
  for (const std::string& field : fields) columns.push_back(findOrOpen(field, fields.size()));
  std::vector<uint32_t> lacking;
  for (uint32_t record = 0; record < records; ++record) {
    const auto isUnknown = [record](const auto& column) { return column == nullptr || !column->knows(record); };
    if (std::any_of(columns.begin(), columns.end(), isUnknown) && isNeeded(record)) lacking.push_back(record);
  }
  return lacking;
}

void FieldValues::add(std::span<const std::string> fields, std::span<const uint32_t> records,
                      std::span<const std::string> objects) {
  const std::lock_guard making(making_);
  const auto files = place();
  std::vector<FieldTokens> values;
  for (const std::string& object : objects) values.emplace_back(object);
  for (const std::string& field : fields) {
    const auto known = find(field);
    std::vector<FieldColumn::RecordValue> added;
    for (size_t r = 0; r < records.size(); ++r) {
      if (known != nullptr && known->knows(records[r])) continue;
      added.push_back({records[r], values[r].of(field)});
    }
    FieldColumn column = (known ? *known : FieldColumn()).with(added);
    if (files && column.unfiledBytes() > makingBytesMax / fields.size()) {
      column = spilledIfPossible(std::move(column), *files, field);
    }
    keep(field, std::make_shared<const FieldColumn>(std::move(column)), fields.size());
  }
}

/// Keeps a column in place of the one before it. If there are too many, drops the one that was used longest ago.
/// `fields`: how many a request needs at once.
void FieldValues::keep(const std::string& field, std::shared_ptr<const FieldColumn> column, size_t fields) {
  const std::unique_lock lock(mutex_);
  Kept& kept = columns_[field];
  kept.column = std::move(column);
  kept.usedAt = ++uses_;
  while (columns_.size() > std::max(columnsMax, fields)) {
    columns_.erase(std::min_element(columns_.begin(), columns_.end(),
                                    [](const auto& a, const auto& b) { return a.second.usedAt < b.second.usedAt; }));
  }
  account();
}

FieldValues::Saved FieldValues::save(std::span<const std::string> fields) {
  Saved saved;
  const auto files = place();
  if (!files) return saved;
  saved.written = writtenOf(fields, [&](const std::string& field) {
    const auto column = find(field);
    if (column == nullptr || !column->isUnsaved()) return false;
    std::vector<RunSource> runs;
    for (const auto& run : column->runs()) runs.push_back({run, {}});
    saveColumn(*files, field, resized(column->known(), files->segment.records),
               resized(column->present(), files->segment.records), runs);
    take(field, *files, column, fields.size());
    return true;
  });
  noteSurplus(*files, saved);
  return saved;
}

FieldValues::Saved FieldValues::copy(std::span<const Source> sources) {
  Saved saved;
  const auto files = place();
  if (!files) return saved;
  std::set<std::string> fields;
  for (const Source& source : sources) {
    for (std::string& field : source.values->fieldNames()) fields.insert(std::move(field));
  }
  saved.written = writtenOf(fields, [&](const std::string& field) { return copyField(field, *files, sources); });
  noteSurplus(*files, saved);
  return saved;
}

/// False if there is nothing to copy.
bool FieldValues::copyField(const std::string& field, const ColumnPlace& files, std::span<const Source> sources) {
  if (findOrOpen(field, 1) != nullptr) return false;
  Bitmap known(files.segment.records), present(files.segment.records);
  std::vector<RunSource> runs;
  for (const Source& source : sources) {
    const auto column = source.values->findOrOpen(field, 1);
    if (column == nullptr) continue;
    for (uint32_t record = 0; record < source.numbers.size(); ++record) {
      const uint32_t number = source.numbers[record];
      if (number == RunSource::left || !column->knows(record)) continue;
      known.set(number);
      if (column->present().test(record)) present.set(number);
    }
    for (const auto& run : column->runs()) runs.push_back({run, source.numbers});
  }
  if (known.count() == 0) return false;
  saveColumn(files, field, known, present, runs);
  take(field, files, nullptr, 1);
  return true;
}

/// Uses a file that was saved just now, unless the column has been exchanged since `before` was taken.
void FieldValues::take(const std::string& field, const ColumnPlace& files,
                       const std::shared_ptr<const FieldColumn>& before, size_t fields) {
  auto stored = openColumn(files, field);
  const std::lock_guard making(making_);
  if (stored && find(field) == before) keep(field, std::make_shared<const FieldColumn>(std::move(*stored)), fields);
}

void FieldValues::noteSurplus(const ColumnPlace& files, Saved& saved) const {
  if (saved.written.empty()) return;
  {
    // The columns in use count as used now.
    const std::shared_lock lock(mutex_);
    for (const auto& [field, kept] : columns_) touchColumn(files, field);
  }
  const auto endings = columnEndings(files.segmentPath);
  if (endings.size() > columnsMax) saved.surplus.assign(endings.begin() + columnsMax, endings.end());
}

std::vector<std::string> FieldValues::fieldNames() const {
  std::vector<std::string> names;
  if (const auto files = place()) {
    for (const std::string& ending : columnEndings(files->segmentPath)) {
      if (auto field = fieldOfColumn(*files, ending)) names.push_back(std::move(*field));
    }
  }
  const std::shared_lock lock(mutex_);
  for (const auto& [field, kept] : columns_) names.push_back(field);
  return names;
}

/// Called with the lock.
void FieldValues::account() {
  uint64_t bytes = 0;
  for (const auto& [field, kept] : columns_) bytes += kept.column->bytes();
  memory_.count(bytes);
}

void FieldValues::drop() {
  const std::unique_lock lock(mutex_);
  columns_.clear();
  account();
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
