// The metadata values of a segment by field, for conditions and for counts of values.
//
// Records hold hashes of values, which have no order. So the values of a field that is used are read from the catalog:
// `lacking` names the records, and `add` takes their metadata. A record that was added stays known, also that it lacks
// the field, because the metadata of a version never changes.
//
// A sealed segment with codes keeps its columns as files (column_file.h), which are opened when they are needed. Other
// segments are small and keep them in memory. Beyond `columnsMax` fields, those used longest ago are dropped. All columns
// may be dropped when room in memory is needed.
//
// A column is a list of sorted runs (value_run.h). New records make a run of their own, and runs of similar size are
// merged: the logarithmic method of Bentley and Saxe (Journal of Algorithms 1, 1980). A column is never changed: `add`
// makes the next one, while readers keep theirs.
#pragma once

#include "files/memory.h"
#include "runtime/bitmap.h"
#include "values/column_file.h"
#include "values/value_run.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maxsimd {

/// Says of a record whether its values are needed.
using IsNeeded = std::function<bool(uint32_t)>;

/// The values of one field.
class FieldColumn {
 public:
  FieldColumn() = default;
  explicit FieldColumn(StoredColumn stored);

  bool knows(uint32_t record) const { return known_.test(record); }
  /// Whether it knows all of the first `records` records that are needed.
  bool isComplete(uint32_t records, const IsNeeded& isNeeded) const;
  /// Sets the bits of the records that have a value in the range, within the bitmap's size. `presence` has no range.
  void addTo(Bitmap& records, Compared compared, const KeyRange& range) const;
  const std::vector<std::shared_ptr<const ValueRun>>& runs() const { return runs_; }
  const Bitmap& known() const { return known_; }
  const Bitmap& present() const { return present_; }
  /// Bytes in memory.
  uint64_t bytes() const;
  /// Bytes of the runs whose blocks are in memory.
  uint64_t unfiledBytes() const;
  /// Whether a file of this column could not be read. Readers ask after their last read, and drop what they read if so.
  bool failed() const;
  /// Whether more than an eighth of what it knows is in no file.
  bool isUnsaved() const { return known_.count() - inFile_ > known_.count() / 8; }

  struct RecordValue {
    uint32_t record;
    /// A JSON token; empty = it lacks the field.
    std::string_view token;
  };
  /// This column with the values of records that it does not know.
  FieldColumn with(std::span<const RecordValue> values) const;
  /// Moves the runs that are in memory into a file without a name, as one run. If many runs are mapped already, all runs
  /// become one.
  FieldColumn spilled(const ColumnPlace& place, const std::string& field) const;

 private:
  static constexpr size_t mappedRunsMax = 16;
  /// A merge of two runs takes no more than some 50 ms.
  static constexpr size_t mergedItemsMax = size_t(1) << 20;

  void addRun(std::shared_ptr<const ValueRun> run);

  std::vector<std::shared_ptr<const ValueRun>> runs_;
  Bitmap known_, present_;
  /// How many of the known records a file of this field has.
  uint32_t inFile_ = 0;
};

class FieldValues : public Reclaimable {
 public:
  static constexpr size_t columnsMax = 32;

  /// `index`: the one whose columns these are (`MemoryNeed`).
  explicit FieldValues(MemoryOwner owner, const void* index = nullptr)
      : Reclaimable(owner), index_(index), memory_(std::move(owner)) {}

  /// From now on columns are kept as files.
  void keepFiles(ColumnPlace place);
  bool keepsFiles() const { return place().has_value(); }
  /// Which of the first `records` records are needed and lack values of one of the fields. Reads files of columns first.
  std::vector<uint32_t> lacking(std::span<const std::string> fields, uint32_t records, const IsNeeded& isNeeded);
  /// Adds values: `objects[i]` is the metadata of `records[i]` as compact JSON. The caller must call `Memory::makeRoom`
  /// afterwards.
  void add(std::span<const std::string> fields, std::span<const uint32_t> records,
           std::span<const std::string> objects);
  /// The column of a field, if it knows all of the first `records` records that are needed; else null.
  std::shared_ptr<const FieldColumn> complete(const std::string& field, uint32_t records,
                                              const IsNeeded& isNeeded) const;

  struct Saved {
    /// Endings of the files that were written.
    std::vector<std::string> written;
    /// Endings of the files that were used longest ago, beyond `columnsMax`. The caller removes them.
    std::vector<std::string> surplus;
  };
  /// Saves the columns of these fields, if they are kept as files and are not saved yet. Throws if all that it tried failed.
  /// A later call tries failed ones again.
  Saved save(std::span<const std::string> fields);
  /// Columns of another segment, and the numbers that its records have in this one (`RunSource`).
  struct Source {
    std::shared_ptr<FieldValues> values;
    std::vector<uint32_t> numbers;
  };
  /// Makes files of the fields that it has no column of, from the columns of other segments.
  Saved copy(std::span<const Source> sources);
  /// Forgets all columns. Files stay.
  void drop();

  uint64_t reclaimableBytes() const override { return memory_.bytes(); }
  /// Drops all columns, except those that `need` names if it is a need of the same index.
  void reclaim(const MemoryNeed& need) override;

 private:
  struct Kept {
    std::shared_ptr<const FieldColumn> column;
    /// As a count of uses.
    mutable std::atomic<uint64_t> usedAt{0};
  };

  std::optional<ColumnPlace> place() const;
  std::shared_ptr<const FieldColumn> find(const std::string& field) const;
  std::shared_ptr<const FieldColumn> findOrOpen(const std::string& field, size_t fields);
  std::vector<std::string> fieldNames() const;
  bool copyField(const std::string& field, const ColumnPlace& files, std::span<const Source> sources);
  void take(const std::string& field, const ColumnPlace& files, const std::shared_ptr<const FieldColumn>& before,
            size_t fields);
  void noteSurplus(const ColumnPlace& files, Saved& saved) const;
  void keep(const std::string& field, std::shared_ptr<const FieldColumn> column, size_t fields);
  void account();

  const void* const index_;
  /// Held while a column is exchanged for the next one, so that no two are built on the same one.
  std::mutex making_;
  mutable std::shared_mutex mutex_;
  std::optional<ColumnPlace> place_;
  mutable std::atomic<uint64_t> uses_{0};
  std::map<std::string, Kept> columns_;
  MemoryShare memory_;
};

}  // namespace maxsimd
