// The distinct values of a metadata field in some records of a segment, sorted, each with the records that have it.
//
// A run is a row of blocks, in memory or in a mapped file (column_file.h), and a small index of them in memory. A block
// holds up to 64 entries, an entry a key with places:
//
//   size  field
//   2     entries
//   2     bytes of the lengths
//   ...   lengths       for each entry the bytes of its key and the number of its places, as LEB128
//   ...   keys          one behind another, padded with zeros to a multiple of 4
//   ...   places        u32 each
//
// So a value that one record has takes 6 bytes more than its key. A value with very many places takes several entries.
#pragma once

#include "files/mapping.h"
#include "runtime/bitmap.h"
#include "values/json_values.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
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

/// Which keys of a field a range compares: its values (no arrays), its dates, the items of its arrays, or its strings by
/// their beginning. Or whether a record has the field at all.
enum class Compared : uint8_t { values, dates, items, presence, prefix };

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

/// A block that holds dates. `first` and `last` are its earliest and its latest date. `isInOrder`: all its values are
/// dates, and they ascend in time.
struct DateZone {
  uint32_t block, isInOrder;
  std::array<char, dateKeyBytes> first, last;
};
static_assert(sizeof(DateZone) == 32);

/// Where the blocks of a run begin, which of them hold dates, and how much they hold.
struct RunIndex {
  /// Multiples of 4, ascending from 0.
  std::vector<uint64_t> blocks;
  std::vector<DateZone> dates;
  uint64_t entries = 0, items = 0, bytes = 0;
};

/// Writes the blocks of a run one after the other. It holds one block.
class RunWriter {
 public:
  using Write = std::function<void(std::span<const uint8_t>)>;

  explicit RunWriter(Write write) : write_(std::move(write)) {}

  /// Keys come ascending. The same key may come again, with other places.
  void add(std::string_view key, std::span<const ValuePlace> places);
  /// Writes the last block. The writer is then used up.
  RunIndex finish();

 private:
  struct Pending {
    uint32_t keyBytes, places;
  };

  void writeBlock();
  void noteDates();

  const Write write_;
  RunIndex index_;
  std::string keys_, lastKey_;
  std::vector<Pending> pending_;
  std::vector<ValuePlace> places_;
};

class ValueRun {
 public:
  struct Value {
    /// As `cutKey` makes it.
    std::string key;
    ValuePlace place;
  };

  /// In memory, from values in any order.
  static std::shared_ptr<const ValueRun> of(std::vector<Value> values);
  ValueRun(RunIndex index, std::vector<uint8_t> blocks);
  /// The blocks begin at `offset`. The caller has written them, or compared them with a checksum.
  ValueRun(RunIndex index, std::shared_ptr<const Mapping> mapping, uint64_t offset);

  ValueRun(const ValueRun&) = delete;

  /// All places of all values.
  uint64_t items() const { return index_.items; }
  uint64_t entries() const { return index_.entries; }
  /// In memory.
  uint64_t bytes() const;
  bool isMapped() const { return mapping_ != nullptr; }
  /// Whether its file could not be read. Readers ask after their last read, and drop what they read if so.
  bool failed() const { return mapping_ != nullptr && mapping_->failure(); }

  /// Moves through the entries, ascending by key.
  class Cursor {
   public:
    /// A block has no more.
    static constexpr size_t entriesMax = 64;

    explicit Cursor(const ValueRun& run, size_t block = 0) : run_(&run), block_(block) { read(); }
    bool atEnd() const { return block_ >= run_->index_.blocks.size(); }
    /// The number of the block that it has reached.
    size_t block() const { return block_; }
    std::string_view key() const { return keyAt(at_); }
    std::span<const ValuePlace> places() const;
    void next() { moveTo(at_ + 1); }
    /// Entries of the block that it has reached.
    size_t entries() const { return entries_; }
    /// Moves to an entry of the block, or behind its last one.
    void moveTo(size_t entry) {
      if ((at_ = entry) == entries_) ++block_, read();
    }
    /// The first entry of the block whose key is not `isBefore`; such keys come first.
    template <typename IsBefore>
    size_t firstNot(const IsBefore& isBefore) const {
      const auto numbers = std::views::iota(size_t(0), entries_);
      return *std::ranges::partition_point(numbers, [&](size_t entry) { return isBefore(keyAt(entry)); });
    }

   private:
    /// Reads the lengths of the next block with entries.
    void read();
    bool readBlock();
    std::string_view keyAt(size_t entry) const;

    const ValueRun* run_;
    size_t block_;
    size_t entries_ = 0, at_ = 0;
    const char* keys_ = nullptr;
    const ValuePlace* places_ = nullptr;
    /// Where each entry ends.
    std::array<uint32_t, entriesMax> keyEnds_, placeEnds_;
  };

  /// Sets the bits of the records that have a value in the range, within the bitmap's size. Values whose keys are cut lie
  /// in no range, but keep their beginning.
  void addTo(Bitmap& records, Compared compared, const KeyRange& range) const;

 private:
  std::span<const uint8_t> block(size_t number) const;
  std::string_view firstKey(size_t block) const;
  void addDates(Bitmap& records, const KeyRange& range) const;

  RunIndex index_;
  std::vector<uint8_t> owned_;
  std::shared_ptr<const Mapping> mapping_;
  std::span<const uint8_t> blocks_;
};

/// A run, and the numbers that its records get.
struct RunSource {
  static constexpr uint32_t left = UINT32_MAX;

  std::shared_ptr<const ValueRun> run;
  /// `numbers[r]` is the new number of record r, or `left`. Records behind the end are left, too. Empty = all stay as
  /// they are.
  std::span<const uint32_t> numbers;
};

/// Writes the values of runs that have no record in common as one run.
void mergeRuns(std::span<const RunSource> sources, RunWriter& writer);
/// The same in memory.
std::shared_ptr<const ValueRun> mergedInMemory(std::span<const RunSource> sources);

}  // namespace maxsimd
