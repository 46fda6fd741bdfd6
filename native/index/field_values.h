// The metadata values of a segment by field, in memory, for ranges. A column holds the keys of one field that ranges
// compare: its values, its dates, the items of its arrays, or a key for each record that has the field.
//
// Records hold hashes of values, which cannot be compared by order. So the values of fields that ranges use are read
// from the catalog: `lacking` names the records, and `add` takes their metadata. A record that was added stays known,
// also that it lacks the field, because the metadata of a version never changes. Beyond `columnsMax` fields, those used
// longest ago are dropped. All of them may be dropped when room in memory is needed.
#pragma once

#include "files/memory.h"
#include "index/bitmap.h"
#include "index/json_values.h"

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

/// A field, and what of its values ranges compare: one character for that (`Compared`), then the field's name.
std::string columnName(Compared compared, const std::string& field);

/// The keys of one field.
class FieldColumn {
 public:
  bool knows(uint32_t record) const { return known_.test(record); }
  /// Adds a record's keys, once for each record. It may have none.
  void add(uint32_t record, std::span<const std::string> keys);
  /// Sets the bits of the records that have a key in the range, within the bitmap's size.
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

  void add(uint32_t record, const std::string& key);
  std::string_view keyOf(const Entry& entry) const;
  bool isBefore(const Entry& a, const Entry& b) const;

  /// All keys, each after its length of two bytes.
  std::vector<char> keys_;
  /// Sorted by key up to `sorted_`. The rest is merged in once it is a quarter of the whole.
  std::vector<Entry> entries_;
  size_t sorted_ = 0;
  Bitmap known_;
};

class FieldValues : public Reclaimable {
 public:
  static constexpr size_t columnsMax = 32;

  /// `index`: the one whose columns these are (`MemoryNeed`).
  explicit FieldValues(MemoryOwner owner, const void* index = nullptr)
      : Reclaimable(owner), index_(index), memory_(std::move(owner)) {}

  /// Which of the first `records` records are needed and lack keys of one of the columns.
  std::vector<uint32_t> lacking(std::span<const std::string> columns, uint32_t records,
                                const std::function<bool(uint32_t)>& isNeeded) const;
  /// Adds values: `objects[i]` is the metadata of `records[i]` as compact JSON. Whoever calls it then asks for room by
  /// `Memory::makeRoom`.
  void add(std::span<const std::string> columns, std::span<const uint32_t> records,
           std::span<const std::string> objects);
  /// Sets the bits of the records that have a key in the range. False if a needed record's keys are not known.
  bool addTo(Bitmap& records, const std::string& column, const KeyRange& range,
             const std::function<bool(uint32_t)>& isNeeded) const;

  uint64_t reclaimableBytes() const override { return memory_.bytes(); }
  /// Drops all columns, except those that `need` names if it is a need of the same index.
  void reclaim(const MemoryNeed& need) override;

 private:
  void makeColumns(std::span<const std::string> names);
  void account();

  void touch(const FieldColumn& column) const { column.usedAt = ++uses_; }

  const void* const index_;
  mutable std::shared_mutex mutex_;
  mutable std::atomic<uint64_t> uses_{0};
  std::map<std::string, FieldColumn> columns_;
  MemoryShare memory_;
};

}  // namespace maxsimd
