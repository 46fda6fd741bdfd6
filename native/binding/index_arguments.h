// The structured arguments of an index handle's methods, checked and copied.
#pragma once

#include "runtime/engine.h"
#include "index/index.h"
#include "search/search.h"

#include <napi.h>

#include <optional>
#include <string>
#include <vector>

namespace maxsimd {

/// `exactTokenVectorsMax` 0: the engine's own measurement is used.
IndexOptions takeIndexOptions(const Napi::Object& options);
/// `nullopt` for `undefined`.
std::optional<PartialCopy> takePartialCopy(const Napi::Value& value);
/// Without `rowBits` rows have 8 bits a component.
RowShape takeRowShape(const Napi::Value& dim, const Napi::Value& rowBits, const std::string& name);
RecordParts takeRecord(const Napi::Value& value, RowShape shape);
IndexSearch takeSearch(const Napi::Value& value, uint32_t dim);
uint64_t takeSegmentId(const Napi::Value& value, const std::string& name = "segmentId");
/// `value`: milliseconds from now.
Deadline takeTimeout(const Napi::Value& value, const std::string& name);
Condition takeCondition(const Napi::Value& value, const std::string& name);
/// A query by metadata alone: which documents match.
struct Matching {
  MetadataFilter filter;
  uint64_t generation;
  Deadline deadline;
};
Matching takeMatching(const Napi::Value& value);
struct SpanCounting : Matching {
  Spans spans;
};
SpanCounting takeSpanCounting(const Napi::Value& value);
std::vector<Index::LifespanChange> takeLifespanColumns(const Napi::Value& value, const std::string& name);
std::vector<Index::LifespanLoad> takeLifespanLoads(const Napi::Value& value);

Napi::Value seenRecords(Napi::Env env, const Index::SeenRecords& seen);

}  // namespace maxsimd
