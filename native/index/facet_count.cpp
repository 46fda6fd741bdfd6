#include "index/facet_count.h"

#include "files/error.h"

#include <algorithm>
#include <utility>

namespace maxsimd {
namespace {

/// The clock is read after so many values of records: some 20 microseconds.
constexpr size_t itemsBetweenChecks = 16'384;

}  // namespace

FacetCount::FacetCount(std::shared_ptr<const Index> index, FacetRequest request)
    : index_(std::move(index)), request_(std::move(request)) {}

bool FacetCount::run(const Deadline& deadline, Clock::time_point pauseAt) {
  if (!selected_) {
    select(deadline);
    takeColumns();
    selected_ = true;
  }
  while (facets_.size() < request_.fields.size()) {
    if (!countField(deadline, pauseAt)) return false;
    if (tooMany_) break;
    facets_.push_back(facetOf());
    counts_.clear();
    at_ = {};
  }
  checkRead();
  return true;
}

void FacetCount::checkRead() const {
  for (const auto& columns : columns_) {
    const auto hasFailed = [](const auto& column) { return column->failed(); };
    if (std::ranges::any_of(columns, hasFailed)) throw Error(ErrorCode::valuesMissing, "values of a field cannot be read");
  }
}

void FacetCount::select(const Deadline& deadline) {
  for (const Selection& selection : selectLive(index_->snapshot(), request_.generation, request_.filter, deadline)) {
    const SegmentSnapshot& snapshot = selection.snapshot;
    if (selection.chunks->count == 0) continue;
    Matches matches{snapshot.segment, snapshot.values, Bitmap(snapshot.records)};
    forEachRecord(selection, [&](uint32_t record) {
      matches.records.set(record);
      ++documents_;
    });
    matches_.push_back(std::move(matches));
  }
}

/// Takes the columns of all fields at once, so that no value is missing later.
void FacetCount::takeColumns() {
  for (const std::string& field : request_.fields) {
    auto& columns = columns_.emplace_back();
    for (const Matches& matches : matches_) {
      const auto isNeeded = [&matches](uint32_t record) { return matches.records.test(record); };
      auto column = matches.values->complete(field, matches.records.size(), isNeeded);
      if (column == nullptr) throw Error(ErrorCode::valuesMissing, "values of a field are not known");
      columns.push_back(std::move(column));
    }
  }
}

/// True = all values of the field are counted, or they are too many.
bool FacetCount::countField(const Deadline& deadline, Clock::time_point pauseAt) {
  const auto& columns = columns_[facets_.size()];
  for (; at_.segment < columns.size(); ++at_.segment, at_.run = 0) {
    const auto& runs = columns[at_.segment]->runs();
    for (; at_.run < runs.size() && !tooMany_; ++at_.run, at_.cursor.reset()) {
      if (!countRun(matches_[at_.segment], *runs[at_.run], deadline, pauseAt)) return false;
    }
  }
  return true;
}

bool FacetCount::countRun(const Matches& matches, const ValueRun& run, const Deadline& deadline,
                          Clock::time_point pauseAt) {
  if (!at_.cursor) at_.cursor.emplace(run);
  for (ValueRun::Cursor& value = *at_.cursor; !value.atEnd() && !tooMany_; value.next()) {
    if (readItems_ >= itemsBetweenChecks) {
      readItems_ = 0;
      deadline.check();
      if (Clock::now() >= pauseAt) return false;
    }
    count(matches, value.key(), value.places());
  }
  return true;
}

void FacetCount::count(const Matches& matches, std::string_view key, std::span<const ValuePlace> places) {
  readItems_ += places.size();
  const auto isMatch = [&matches](ValuePlace place) { return matches.records.test(place.record()); };
  const auto count = uint64_t(std::ranges::count_if(places, isMatch));
  if (count == 0) return;
  const auto [found, isNew] = counts_.try_emplace(key, Found{0, 0});
  found->second.count += count;
  if (!isNew) return;
  const auto first = std::ranges::find_if(places, isMatch);
  // A file that cannot be read any more may have changed since.
  if (first != places.end()) found->second.versionId = matches.segment->record(first->record()).versionId;
  bytes_ += fullKeyBytes(key);
  if (counts_.size() > request_.distinctMost || bytes_ > request_.bytesMost) tooMany_ = facets_.size();
}

Facet FacetCount::facetOf() const {
  using Entry = std::pair<std::string_view, Found>;
  std::vector<Entry> best(std::min<size_t>(request_.limit, counts_.size()));
  std::partial_sort_copy(counts_.begin(), counts_.end(), best.begin(), best.end(), [](const Entry& a, const Entry& b) {
    return a.second.count != b.second.count ? a.second.count > b.second.count : a.first < b.first;
  });
  Facet facet{counts_.size(), {}};
  for (const auto& [key, found] : best) facet.values.push_back({std::string(key), found.count, found.versionId});
  return facet;
}

}  // namespace maxsimd
