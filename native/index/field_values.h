// The values of a segment's metadata by field, in memory: what ranges look up.
//
// Records hold hashes of values and cannot be asked for more or less. So the fields that ranges have asked for are
// brought from the catalog, where the metadata is, record by record: `lacking` says which records, `add` takes them. A
// record that was added is known for good, also to lack the field: a version's metadata never changes. The fields asked for
// longest ago are forgotten beyond `columnsMax`.
#pragma once

#include "files/memory.h"
#include "index/bitmap.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maxsimd {

/// Keys (json_values.h) between two bounds.
struct KeyRange {
  std::string low, high;
  bool lowExcluded, highExcluded;

  bool isBelow(std::string_view key) const { return lowExcluded ? key <= low : key < low; }
  bool isAbove(std::string_view key) const { return highExcluded ? key >= high : key > high; }
};

/// The values of one field.
class FieldColumn {
 public:
  bool knows(uint32_t record) const { return known_.test(record); }
  /// `key`: of the record's value; absent = it has none. Once for each record.
  void add(uint32_t record, const std::string* key);
  /// Adds the records whose values lie in the range, as far as the bitmap reaches.
  void addTo(Bitmap& records, const KeyRange& range) const;
  /// Whether it knows each of the first `records` records that `isNeeded`.
  bool isComplete(uint32_t records, const std::function<bool(uint32_t)>& isNeeded) const;
  uint64_t bytes() const { return entries_.capacity() * sizeof(Entry) + keys_.capacity() + known_.size() / 8; }

  /// When it was asked for last, counted in uses of the segment's columns.
  mutable std::atomic<uint64_t> usedAt{0};

 private:
  struct Entry {
    /// The first bytes of the key, the first in the highest place: they decide most comparisons.
    uint64_t prefix;
    uint32_t begin;
    uint32_t record;
  };

  std::string_view keyOf(const Entry& entry) const;
  bool isBefore(const Entry& a, const Entry& b) const;

  /// Each key behind its length, of two bytes.
  std::vector<char> keys_;
  /// In order of their keys up to `sorted_`; those behind come in when they have become as many as a quarter.
  std::vector<Entry> entries_;
  size_t sorted_ = 0;
  Bitmap known_;
};

class FieldValues {
 public:
  static constexpr size_t columnsMax = 32;

  /// Those of the first `records` records that are needed and not known of one of the fields.
  std::vector<uint32_t> lacking(std::span<const std::string> fields, uint32_t records,
                                const std::function<bool(uint32_t)>& isNeeded) const;
  /// `objects[i]`: metadata of `records[i]` as compact JSON. `no_memory` if there is no room.
  void add(std::span<const std::string> fields, std::span<const uint32_t> records,
           std::span<const std::string> objects);
  /// Adds the records whose values lie in the range; false if it is not known of all that are needed.
  bool addTo(Bitmap& records, const std::string& field, const KeyRange& range,
             const std::function<bool(uint32_t)>& isNeeded) const;

 private:
  void makeColumns(std::span<const std::string> fields);
  void account();

  void touch(const FieldColumn& column) const { column.usedAt = ++uses_; }

  mutable std::shared_mutex mutex_;
  mutable std::atomic<uint64_t> uses_{0};
  std::map<std::string, FieldColumn> columns_;
  MemoryShare memory_;
};

}  // namespace maxsimd
