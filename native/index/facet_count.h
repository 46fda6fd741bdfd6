// Counts the values of metadata fields over the documents that match.
//
// A value of an array counts once for a document; a document without the field counts nothing. Counts are exact. The
// work is linear in the values of the fields in all records, and is done in parts, so that other work has its turn.
#pragma once

#include "index/selection.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace maxsimd {

struct FacetRequest {
  uint64_t generation;
  MetadataFilter filter;
  std::vector<std::string> fields;
  /// How many values of each field are answered.
  uint32_t limit;
  /// A field may have so many distinct values, and those of all fields may have so many bytes.
  uint32_t distinctMost;
  uint64_t bytesMost;
};

struct Facet {
  struct Value {
    /// As in a run (value_run.h).
    std::string key;
    uint64_t count;
    /// One of the documents that have it.
    uint64_t versionId;
  };
  uint64_t distinct = 0;
  /// The most frequent first; of equal counts by their keys.
  std::vector<Value> values;
};

class FacetCount {
 public:
  FacetCount(std::shared_ptr<const Index> index, FacetRequest request);

  /// Counts until `pauseAt`. False = it is not done yet, and goes on with the next call, on the same snapshot.
  /// Fails with `values_missing` if values are not known or cannot be read any more. After a failure the count must be
  /// made anew.
  bool run(const Deadline& deadline, Clock::time_point pauseAt);

  /// The outcome, once it is done: how many documents match, and their values field by field.
  uint64_t documents() const { return documents_; }
  const std::vector<Facet>& facets() const { return facets_; }
  /// The place of a field that has more values than allowed. No field is counted after it.
  std::optional<size_t> tooMany() const { return tooMany_; }

 private:
  /// The matching records of a segment.
  struct Matches {
    std::shared_ptr<const Segment> segment;
    std::shared_ptr<const FieldValues> values;
    Bitmap records;
  };
  struct Found {
    uint64_t count;
    uint64_t versionId;
  };
  /// The next value to count. Without a cursor it is the first of the run.
  struct Place {
    size_t segment = 0, run = 0;
    std::optional<ValueRun::Cursor> cursor;
  };

  void select(const Deadline& deadline);
  void takeColumns();
  bool countField(const Deadline& deadline, Clock::time_point pauseAt);
  bool countRun(const Matches& matches, const ValueRun& run, const Deadline& deadline, Clock::time_point pauseAt);
  void count(const Matches& matches, std::string_view key, std::span<const ValuePlace> places);
  void checkRead() const;
  Facet facetOf() const;

  const std::shared_ptr<const Index> index_;
  const FacetRequest request_;
  bool selected_ = false;
  std::vector<Matches> matches_;
  /// Field by field, each as `matches_`. The keys of `counts_` lie in their runs.
  std::vector<std::vector<std::shared_ptr<const FieldColumn>>> columns_;
  std::unordered_map<std::string_view, Found> counts_;
  Place at_;
  /// Values of records that were read since the clock was read.
  size_t readItems_ = 0;
  uint64_t bytes_ = 0;
  uint64_t documents_ = 0;
  std::vector<Facet> facets_;
  std::optional<size_t> tooMany_;
};

}  // namespace maxsimd
