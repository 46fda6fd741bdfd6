// The metadata values of a segment by field, in memory, for ranges.
//
// Records hold hashes of values, which cannot be compared by order. So the values of fields that ranges use are read
// from the catalog: `lacking` names the records, and `add` takes their metadata. A record that was added stays known,
// also that it lacks the field, because the metadata of a version never changes. Beyond `columnsMax` fields, those used
// longest ago are dropped.
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

/// A range of keys (json_values.h).
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
  /// Adds a record's value, once for each record. A null `key`: it has none.
  void add(uint32_t record, const std::string* key);
  /// Sets the bits of the records whose values lie in the range, within the bitmap's size.
  void addTo(Bitmap& records, const KeyRange& range) const;
  /// Whether it knows all of the first `records` records that `isNeeded` accepts.
  bool isComplete(uint32_t records, const std::function<bool(uint32_t)>& isNeeded) const;
  uint64_t bytes() const { return entries_.capacity() * sizeof(Entry) + keys_.capacity() + known_.size() / 8; }

  /// Last use, as a count of uses of the segment's columns.
  mutable std::atomic<uint64_t> usedAt{0};

 private:
  struct Entry {
    /// The first eight bytes of the key, big-endian. They decide most comparisons.
    uint64_t prefix;
    uint32_t begin;
    uint32_t record;
  };

  std::string_view keyOf(const Entry& entry) const;
  bool isBefore(const Entry& a, const Entry& b) const;

  /// All keys, each after its length of two bytes.
  std::vector<char> keys_;
  /// Sorted by key up to `sorted_`. The rest is merged in once it is a quarter of the whole.
  std::vector<Entry> entries_;
  size_t sorted_ = 0;
  Bitmap known_;
};

class FieldValues {
 public:
  static constexpr size_t columnsMax = 32;

  /// Which of the first `records` records are needed and lack a value of one of the fields.
  std::vector<uint32_t> lacking(std::span<const std::string> fields, uint32_t records,
                                const std::function<bool(uint32_t)>& isNeeded) const;
  /// Adds values: `objects[i]` is the metadata of `records[i]` as compact JSON. `no_memory` if there is no room.
  void add(std::span<const std::string> fields, std::span<const uint32_t> records,
           std::span<const std::string> objects);
  /// Sets the bits of the records whose values lie in the range. False if a needed record's value is not known.
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
