#include "values/value_run.h"

#include "files/error.h"

#include <algorithm>
#include <numeric>
#include <ranges>

namespace maxsimd {
namespace {

/// Moves through the values of a run.
class Cursor {
 public:
  explicit Cursor(const ValueRun& run) : run_(run) {}
  bool atEnd() const { return value_ == run_.size(); }
  std::string_view key() const { return run_.key(value_); }
  std::span<const ValuePlace> places() const { return run_.places(value_); }
  void next() { ++value_; }

 private:
  const ValueRun& run_;
  size_t value_ = 0;
};

}  // namespace

std::shared_ptr<const ValueRun> ValueRun::of(std::vector<Entry> entries) {
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    const int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : a.place < b.place;
  });
  auto run = std::make_shared<ValueRun>();
  std::vector<ValuePlace> places;
  for (size_t first = 0, next = 0; first < entries.size(); first = next) {
    places.clear();
    for (; next < entries.size() && entries[next].key == entries[first].key; ++next) {
      // An array that has a value twice counts once.
      if (places.empty() || places.back() != entries[next].place) places.push_back(entries[next].place);
    }
    run->append(entries[first].key, places);
  }
  run->finish();
  return run;
}

std::shared_ptr<const ValueRun> ValueRun::merged(const ValueRun& one, const ValueRun& other) {
  auto run = std::make_shared<ValueRun>();
  std::vector<ValuePlace> places;
  for (Cursor a(one), b(other); !a.atEnd() || !b.atEnd();) {
    const int order = a.atEnd() ? 1 : b.atEnd() ? -1 : a.key().compare(b.key());
    const std::string_view key = order <= 0 ? a.key() : b.key();
    places.clear();
    std::ranges::merge(order <= 0 ? a.places() : std::span<const ValuePlace>(),
                       order >= 0 ? b.places() : std::span<const ValuePlace>(), std::back_inserter(places));
    run->append(key, places);
    if (order <= 0) a.next();
    if (order >= 0) b.next();
  }
  run->finish();
  return run;
}

void ValueRun::append(std::string_view key, std::span<const ValuePlace> places) {
  if (keys_.size() + key.size() > UINT32_MAX || places_.size() + places.size() > UINT32_MAX) {
    throw Error(ErrorCode::noMemory, "a segment holds too many values of a field");
  }
  keys_.insert(keys_.end(), key.begin(), key.end());
  places_.insert(places_.end(), places.begin(), places.end());
  ends_.push_back({uint32_t(keys_.size()), uint32_t(places_.size())});
}

void ValueRun::finish() {
  keys_.shrink_to_fit();
  places_.shrink_to_fit();
  ends_.shrink_to_fit();
  const auto isBeforeStrings = [this](uint32_t value) { return key(value) < stringKeys; };
  const auto values = std::views::iota(uint32_t(0), uint32_t(size()));
  for (const uint32_t value : std::ranges::subrange(std::ranges::partition_point(values, isBeforeStrings), values.end())) {
    if (key(value) >= otherKeys) break;
    const auto date = dateKeyOfText(key(value).substr(1));
    if (date) std::ranges::copy(*date, dates_.emplace_back(Date{{}, value}).bytes.begin());
  }
  std::ranges::sort(dates_, {}, &Date::key);
  dates_.shrink_to_fit();
}

std::string_view ValueRun::key(size_t value) const {
  const size_t begin = value == 0 ? 0 : ends_[value - 1].key;
  return {keys_.data() + begin, ends_[value].key - begin};
}

std::span<const ValuePlace> ValueRun::places(size_t value) const {
  const size_t begin = value == 0 ? 0 : ends_[value - 1].places;
  return {places_.data() + begin, ends_[value].places - begin};
}

uint64_t ValueRun::bytes() const {
  return sizeof *this + keys_.capacity() + places_.capacity() * sizeof(ValuePlace) + ends_.capacity() * sizeof(Ends) +
         dates_.capacity() * sizeof(Date);
}

void ValueRun::addTo(Bitmap& records, Compared compared, const KeyRange& range) const {
  if (compared == Compared::dates) return addDates(records, range);
  const auto values = std::views::iota(size_t(0), size());
  const auto first = std::ranges::partition_point(values, [&](size_t value) { return range.isBelow(key(value)); });
  for (size_t value = *first; value < size() && !range.isAbove(key(value)); ++value) {
    if (!isCut(key(value))) addPlaces(records, value, compared == Compared::items);
  }
}

void ValueRun::addDates(Bitmap& records, const KeyRange& range) const {
  auto date = std::ranges::partition_point(dates_, [&](const Date& date) { return range.isBelow(date.key()); });
  for (; date != dates_.end() && !range.isAbove(date->key()); ++date) addPlaces(records, date->value, false);
}

void ValueRun::addPlaces(Bitmap& records, size_t value, bool inArray) const {
  for (const ValuePlace place : places(value)) {
    if (place.inArray() == inArray && place.record() < records.size()) records.set(place.record());
  }
}

}  // namespace maxsimd
