#include "binding/index_arguments.h"

#include "binding/arguments.h"
#include "kernels/half.h"

#include <array>
#include <cstring>
#include <functional>
#include <utility>

namespace maxsimd {
namespace {

constexpr double topKMax = 10'000;
/// The service asks for far fewer. Evaluations use more as a reference.
constexpr double exactChunksMax = 100'000;
constexpr uint32_t filterTermsMax = 256;
constexpr double timeoutMsMax = 1e9;
constexpr double countedSpansMax = 512;
/// A search tells spans by the bits of 64.
constexpr double matchedSpansMax = 64;
/// One for each match field of an index.
constexpr double spanTermsMax = 8;

/// The bytes of the terms, valid as long as those of `takeArray`.
std::span<const uint8_t> takeTerms(const Napi::Value& value, const std::string& name, uint32_t most) {
  const auto bytes = takeArray<uint8_t>(value, name);
  if (bytes.size() % termBytes != 0) refuse(name, "16 bytes per term");
  checkInteger(double(bytes.size() / termBytes), "terms in " + name, 0, most);
  return bytes;
}

Plan takePlan(const Napi::Value& value) {
  if (value.IsUndefined()) return Plan::automatic;
  const std::string name = takeString(value, "search.plan");
  for (const Plan plan : {Plan::automatic, Plan::exact, Plan::codes, Plan::lists, Plan::graph}) {
    if (name == planName(plan)) return plan;
  }
  refuse("search.plan", "auto, exact, codes, lists or graph");
}

}  // namespace

IndexOptions takeIndexOptions(const Napi::Object& options) {
  const auto [dim, rowBits, exact, centroids, owner] =
      properties(options, "dim", "rowBits", "exactTokenVectorsMax", "centroids", "owner");
  return {takeRowShape(dim, rowBits, "options"), takeInteger(exact, "options.exactTokenVectorsMax"),
          centroids.IsUndefined() ? 0 : uint32_t(takeInteger(centroids, "options.centroids", 0, centroidsMax)),
          owner.IsUndefined() ? "" : takeString(owner, "options.owner")};
}

RowShape takeRowShape(const Napi::Value& dim, const Napi::Value& rowBits, const std::string& name) {
  const auto dimensions = uint32_t(takeInteger(dim, name + ".dim", 1, dimMax));
  if (rowBits.IsUndefined()) return dimensions;
  const auto bits = uint32_t(takeInteger(rowBits, name + ".rowBits", 1, 8));
  if (!isRowBits(bits)) refuse(name + ".rowBits", "1, 2, 4 or 8");
  return {dimensions, bits};
}

std::optional<PartialCopy> takePartialCopy(const Napi::Value& value) {
  if (value.IsUndefined()) return std::nullopt;
  const auto [path, partBytes, given] = properties(takeObject(value, "partial"), "path", "partBytes", "parts");
  const auto parts = takeArray<uint8_t>(given, "partial.parts");
  return PartialCopy{
      takeString(path, "partial.path"), takeInteger(partBytes, "partial.partBytes", 1), {parts.begin(), parts.end()}};
}

RecordParts takeRecord(const Napi::Value& value, RowShape shape) {
  const Napi::Object record = takeObject(value, "record");
  const auto [versionId, givenRows, givenVectors, givenScales, givenTerms, givenRanges, givenPlaces] =
      properties(record, "versionId", "chunkRows", "vectors", "scales", "terms", "chunkRanges", "rowPlaces");
  RecordParts parts;
  parts.versionId = takeInteger(versionId, "record.versionId");
  const auto chunkRows = takeArray<uint32_t>(givenRows, "record.chunkRows");
  checkInteger(double(chunkRows.size()), "record.chunkRows.length", 1, recordChunksMax);
  uint64_t rows = 0;
  for (const uint32_t count : chunkRows) {
    require(count >= 1, "record.chunkRows must be at least 1 each");
    rows += count;
  }
  checkInteger(double(rows), "the sum of record.chunkRows", 1, recordRowsMax);
  const auto vectors = takeArray<int8_t>(givenVectors, "record.vectors");
  require(vectors.size() == rows * shape.bytes(), "record.vectors must hold all rows");
  const auto scales = takeArray<uint16_t>(givenScales, "record.scales");
  require(scales.size() == rows, "record.scales must hold one value per row");
  for (const uint16_t scale : scales) require(halfIsFinite(scale), "record.scales must be finite throughout");
  const auto terms = takeTerms(givenTerms, "record.terms", recordTermsMax);

  parts.chunkRows.assign(chunkRows.begin(), chunkRows.end());
  parts.vectors.reserve(vectors.size() + readPaddingBytes);
  parts.vectors.assign(vectors.begin(), vectors.end());
  parts.vectors.resize(vectors.size() + readPaddingBytes);
  parts.scales.assign(scales.begin(), scales.end());
  parts.terms.assign(terms.begin(), terms.end());
  if (!givenRanges.IsUndefined()) {
    const auto ranges = takeArray<uint32_t>(givenRanges, "record.chunkRanges");
    const auto places = takeArray<uint8_t>(givenPlaces, "record.rowPlaces");
    require(ranges.size() == chunkRows.size() * 3, "record.chunkRanges must hold three values per chunk");
    uint64_t placeBytes = 0;
    for (size_t c = 0; c < chunkRows.size(); ++c) {
      parts.ranges.push_back({ranges[c * 3], ranges[c * 3 + 1], ranges[c * 3 + 2]});
      placeBytes += ranges[c * 3 + 2];
    }
    require(placeBytes == places.size(), "record.rowPlaces must hold the bytes that record.chunkRanges states");
    parts.places.assign(places.begin(), places.end());
  }
  return parts;
}

namespace {

MetadataFilter takeFilter(const Napi::Value& terms, const Napi::Value& where, const std::string& name) {
  MetadataFilter filter;
  if (!terms.IsUndefined()) {
    const auto bytes = takeTerms(terms, name + ".filterTerms", filterTermsMax);
    if (!bytes.empty()) {
      filter.terms.emplace(bytes.size() / termBytes);
      std::memcpy(filter.terms->data(), bytes.data(), bytes.size());
    }
  }
  if (!where.IsUndefined()) filter.where = takeCondition(where, name + ".where");
  return filter;
}

}  // namespace

uint64_t takeSegmentId(const Napi::Value& value, const std::string& name) { return takeInteger(value, name); }

Deadline takeTimeout(const Napi::Value& value, const std::string& name) {
  const double timeout = takePositive(value, name);
  Deadline deadline;
  deadline.at = Clock::now() + std::chrono::microseconds(int64_t(std::min(timeout, timeoutMsMax) * 1000));
  return deadline;
}

Condition takeCondition(const Napi::Value& value, const std::string& name) {
  return readCondition(takeArray<uint8_t>(value, name));
}

Matching takeMatching(const Napi::Value& value) {
  const Napi::Object matching = takeObject(value, "matching");
  const auto [generation, terms, where, timeoutMs] =
      properties(matching, "generation", "filterTerms", "where", "timeoutMs");
  return {takeFilter(terms, where, "matching"), takeInteger(generation, "matching.generation"),
          takeTimeout(timeoutMs, "matching.timeoutMs")};
}

namespace {

Spans takeSpans(const Napi::Value& givenTerms, const Napi::Value& givenCounts, double most, const std::string& name) {
  const auto termCounts = takeArray<uint32_t>(givenCounts, name + ".termCounts");
  checkInteger(double(termCounts.size()), name + ".termCounts.length", 1, most);
  uint64_t count = 0;
  for (const uint32_t terms : termCounts) count += checkInteger(terms, name + ".termCounts", 1, spanTermsMax);
  const auto bytes = takeArray<uint8_t>(givenTerms, name + ".terms");
  if (bytes.size() != count * termBytes) refuse(name + ".terms", "the terms that termCounts states, 16 bytes each");
  std::vector<Term> terms(count);
  std::memcpy(terms.data(), bytes.data(), bytes.size());
  return Spans::of(terms, termCounts);
}

/// Reads the properties of `search.match`, and returns a function that takes them: arrays must not be looked at while
/// properties of the search are still to be read.
using TakeMatch = std::function<std::optional<SpanMatch>()>;
TakeMatch readMatch(const Napi::Value& value) {
  if (value.IsUndefined()) return [] { return std::nullopt; };
  const auto [terms, termCounts, bonuses] =
      properties(takeObject(value, "search.match"), "terms", "termCounts", "bonuses");
  return [terms, termCounts, bonuses]() -> std::optional<SpanMatch> {
    SpanMatch match{takeSpans(terms, termCounts, matchedSpansMax, "search.match"), {}};
    const auto given = takeArray<float>(bonuses, "search.match.bonuses");
    if (given.size() != match.spans.count) refuse("search.match.bonuses", "one value per span");
    requireFinite(given, "search.match.bonuses");
    for (const float bonus : given) {
      if (bonus < 0) refuse("search.match.bonuses", "0 or more each");
    }
    match.bonuses.assign(given.begin(), given.end());
    return match;
  };
}

}  // namespace

SpanCounting takeSpanCounting(const Napi::Value& value) {
  const Napi::Object counting = takeObject(value, "counting");
  const auto [generation, terms, where, timeoutMs, spanTerms, termCounts] =
      properties(counting, "generation", "filterTerms", "where", "timeoutMs", "terms", "termCounts");
  return {{takeFilter(terms, where, "counting"), takeInteger(generation, "counting.generation"),
           takeTimeout(timeoutMs, "counting.timeoutMs")},
          takeSpans(spanTerms, termCounts, countedSpansMax, "counting")};
}

IndexSearch takeSearch(const Napi::Value& value, uint32_t dim) {
  const Napi::Object search = takeObject(value, "search");
  const auto [givenOffsets, givenQuery, topK, skip, grouped, candidateK, breadth, generation, components, plan, terms,
              where, timeoutMs, givenMatch] =
      properties(search, "offsets", "query", "topK", "skip", "grouped", "candidateK", "breadth", "generation",
                 "components", "plan", "filterTerms", "where", "timeoutMs", "match");
  const auto match = readMatch(givenMatch);
  IndexSearch request{};
  static_cast<MetadataFilter&>(request) = takeFilter(terms, where, "search");
  const auto offsets = takeArray<float>(givenOffsets, "search.offsets");
  checkInteger(double(offsets.size()), "search.offsets.length", 1, queryTokensMax);
  const auto query = takeArray<float>(givenQuery, "search.query");
  require(query.size() == offsets.size() * dim, "search.query must hold offsets.length x dim values");
  requireFinite(query, "search.query");
  requireFinite(offsets, "search.offsets");
  request.query.assign(query.begin(), query.end());
  request.offsets.assign(offsets.begin(), offsets.end());
  request.topK = uint32_t(takeInteger(topK, "search.topK", 1, topKMax));
  if (!skip.IsUndefined()) request.skip = uint32_t(takeInteger(skip, "search.skip", 0, topKMax));
  request.grouped = takeFlag(grouped, "search.grouped");
  request.candidateK = uint32_t(takeInteger(candidateK, "search.candidateK", 1, exactChunksMax));
  if (!breadth.IsUndefined()) request.breadth = takePositive(breadth, "search.breadth");
  request.generation = takeInteger(generation, "search.generation");
  request.components = takeBoolean(components, "search.components");
  request.plan = takePlan(plan);
  request.match = match();
  request.deadline = takeTimeout(timeoutMs, "search.timeoutMs");
  return request;
}

std::vector<Index::LifespanChange> takeLifespanColumns(const Napi::Value& value, const std::string& name) {
  const auto [givenIds, givenRecords] = properties(takeObject(value, name), "segmentIds", "records");
  const auto segmentIds = takeArray<double>(givenIds, name + ".segmentIds");
  const auto records = takeArray<uint32_t>(givenRecords, name + ".records");
  if (segmentIds.size() != records.size()) refuse(name, "columns of equal length");
  std::vector<Index::LifespanChange> changes;
  for (size_t i = 0; i < records.size(); ++i) {
    changes.push_back({checkInteger(segmentIds[i], name + ".segmentIds", 0, integerMax), records[i]});
  }
  return changes;
}

std::vector<Index::LifespanLoad> takeLifespanLoads(const Napi::Value& value) {
  const std::vector<Index::LifespanChange> changes = takeLifespanColumns(value, "columns");
  const auto [givenIds, givenBorn, givenDied] = properties(value.As<Napi::Object>(), "versionIds", "born", "died");
  const auto versionIds = takeArray<double>(givenIds, "columns.versionIds");
  const auto born = takeArray<double>(givenBorn, "columns.born");
  const auto died = takeArray<double>(givenDied, "columns.died");
  if (versionIds.size() != changes.size() || born.size() != changes.size() || died.size() != changes.size()) {
    refuse("columns", "columns of equal length");
  }
  std::vector<Index::LifespanLoad> loads;
  for (size_t i = 0; i < changes.size(); ++i) {
    const uint64_t end = checkInteger(died[i], "columns.died", 0, integerMax);
    loads.push_back({changes[i], checkInteger(versionIds[i], "columns.versionIds", 0, integerMax),
                     checkInteger(born[i], "columns.born", 0, integerMax), end == 0 ? generationNever : end});
  }
  return loads;
}

Napi::Value seenRecords(Napi::Env env, const Index::SeenRecords& seen) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("records", makeArray<uint32_t, Napi::Uint32Array>(env, seen.records.data(), seen.records.size()));
  object.Set("versionIds", makeArray<double, Napi::Float64Array>(env, seen.versionIds.data(), seen.versionIds.size()));
  return object;
}

}  // namespace maxsimd
