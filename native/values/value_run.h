// The distinct values of a metadata field in some records of a segment, sorted, each with the records that have it.
#pragma once

#include "runtime/bitmap.h"
#include "values/json_values.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maxsimd {

/// A range of keys (json_values.h).
struct KeyRange {
  std::string low, high;
  bool lowExcluded, highExcluded;

  bool isBelow(std::string_view key) const { return lowExcluded ? key <= low : key < low; }
  bool isAbove(std::string_view key) const { return highExcluded ? key >= high : key > high; }
};

/// Which keys of a field a range compares: its values (no arrays), its dates, the items of its arrays. Or whether a
/// record has the field at all.
enum class Compared : uint8_t { values, dates, items, presence };

/// Where a value stands: in which record, and whether in an array there.
class ValuePlace {
 public:
  /// Records have less than 31 bits: each takes more than a byte of its segment's directory.
  ValuePlace(uint32_t record, bool inArray) : bits_(record << 1 | uint32_t(inArray)) {}
  uint32_t record() const { return bits_ >> 1; }
  bool inArray() const { return bits_ & 1; }
  auto operator<=>(const ValuePlace&) const = default;

 private:
  uint32_t bits_;
};

class ValueRun {
 public:
  struct Entry {
    /// As `cutKey` makes it.
    std::string key;
    ValuePlace place;
  };

  /// `no_memory` if the values are too many for one run.
  static std::shared_ptr<const ValueRun> of(std::vector<Entry> entries);
  /// The values of two runs that have no record in common.
  static std::shared_ptr<const ValueRun> merged(const ValueRun& one, const ValueRun& other);

  /// Distinct values.
  size_t size() const { return ends_.size(); }
  /// Ascending.
  std::string_view key(size_t value) const;
  /// Ascending.
  std::span<const ValuePlace> places(size_t value) const;
  /// All places of all values.
  size_t items() const { return places_.size(); }
  uint64_t bytes() const;

  /// Sets the bits of the records that have a value in the range, within the bitmap's size. Values whose keys are cut lie
  /// in no range.
  void addTo(Bitmap& records, Compared compared, const KeyRange& range) const;

 private:
  struct Ends {
    uint32_t key, places;
  };
  struct Date {
    std::array<char, dateKeyBytes> bytes;
    uint32_t value;

    std::string_view key() const { return {bytes.data(), bytes.size()}; }
  };

  void append(std::string_view key, std::span<const ValuePlace> places);
  void finish();
  void addPlaces(Bitmap& records, size_t value, bool inArray) const;
  void addDates(Bitmap& records, const KeyRange& range) const;

  std::vector<char> keys_;
  std::vector<ValuePlace> places_;
  /// Where the key and the places of each value end.
  std::vector<Ends> ends_;
  /// The values that are dates, ascending by time.
  std::vector<Date> dates_;
};

}  // namespace maxsimd
