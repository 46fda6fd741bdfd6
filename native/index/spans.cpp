#include "index/spans.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace maxsimd {
namespace {

struct Carrier {
  uint32_t record;
  uint32_t span;

  friend auto operator<=>(const Carrier&, const Carrier&) = default;
};

/// The selected records of a segment that have spans, ascending and distinct. Of a term that more than `most` of them carry
/// some are left out, but not so many that `most` remain.
std::vector<Carrier> carriersOf(const Selection& selection, const Spans& spans, uint64_t most,
                                const Deadline& deadline) {
  std::vector<Carrier> carriers;
  if (selection.chunks->count == 0) return carriers;
  const Segment& segment = *selection.snapshot.segment;
  const auto isSelected = [&](uint32_t record) {
    return selection.chunks->chunks.test(segment.record(record).firstChunk);
  };
  std::vector<uint64_t> found(spans.terms.size());
  const auto visit = [&](size_t term, const std::vector<uint32_t>& records) {
    for (const uint32_t record : records) {
      if (found[term] > most) return false;
      if (!isSelected(record)) continue;
      ++found[term];
      for (uint32_t s = spans.begins[term]; s < spans.begins[term + 1]; ++s)
        carriers.push_back({record, spans.spans[s]});
    }
    return true;
  };
  const Checkpoint checkpoint = [&deadline] { deadline.check(); };
  for (const uint32_t record : segment.visitCarriers(spans.terms, selection.snapshot.records, checkpoint, visit)) {
    if (!isSelected(record)) continue;
    for (uint32_t span = 0; span < spans.count; ++span) carriers.push_back({record, span});
  }
  std::sort(carriers.begin(), carriers.end());
  carriers.erase(std::unique(carriers.begin(), carriers.end()), carriers.end());
  return carriers;
}

}  // namespace

Spans Spans::of(std::span<const Term> terms, std::span<const uint32_t> termCounts) {
  std::vector<std::pair<Term, uint32_t>> pairs;
  for (uint32_t span = 0; span < termCounts.size(); ++span) {
    for (uint32_t t = 0; t < termCounts[span]; ++t) pairs.emplace_back(terms[pairs.size()], span);
  }
  std::sort(pairs.begin(), pairs.end());
  Spans spans;
  spans.count = uint32_t(termCounts.size());
  for (const auto& [term, span] : pairs) {
    if (spans.terms.empty() || spans.terms.back() != term) {
      spans.terms.push_back(term);
      spans.begins.push_back(uint32_t(spans.spans.size()));
    }
    spans.spans.push_back(span);
  }
  spans.begins.push_back(uint32_t(spans.spans.size()));
  return spans;
}

SpanCounts countSpans(const Index& index, uint64_t generation, const Spans& spans, const MetadataFilter& filter,
                      const Deadline& deadline) {
  const std::vector<Selection> live = selectLive(index.snapshot(), generation, {}, deadline);
  SpanCounts counts{0, std::vector<SpanCounts::Span>(spans.count)};
  for (const Selection& selection : live) counts.documents += selection.chunks->documents;
  const uint64_t most = spanDocumentsMost(counts.documents);
  std::vector<std::vector<Carrier>> found;
  for (const Selection& selection : live) {
    found.push_back(carriersOf(selection, spans, most, deadline));
    for (const Carrier& carrier : found.back()) ++counts.spans[carrier.span].documents;
  }
  // The filter is evaluated only where a document has a rare span.
  std::vector<SegmentSnapshot> snapshots;
  for (size_t s = 0; s < live.size(); ++s) {
    std::erase_if(found[s], [&](const Carrier& carrier) { return counts.spans[carrier.span].documents > most; });
    if (!found[s].empty()) snapshots.push_back(live[s].snapshot);
  }
  std::erase_if(found, [](const auto& carriers) { return carriers.empty(); });
  const std::vector<Selection> selected = selectLive(snapshots, generation, filter, deadline);
  for (size_t s = 0; s < selected.size(); ++s) {
    const Segment& segment = *selected[s].snapshot.segment;
    for (const Carrier& carrier : found[s]) {
      const RecordEntry& record = segment.record(carrier.record);
      if (!selected[s].chunks->chunks.test(record.firstChunk)) continue;
      counts.spans[carrier.span].chunks += record.chunks;
      counts.spans[carrier.span].rows += record.rows;
    }
  }
  return counts;
}

std::vector<SpanHit> spanHits(const std::vector<Selection>& selections, const Spans& spans, const Deadline& deadline) {
  std::vector<SpanHit> hits;
  for (uint32_t s = 0; s < selections.size(); ++s) {
    for (const auto& [record, span] : carriersOf(selections[s], spans, UINT64_MAX, deadline)) {
      if (hits.empty() || hits.back().selection != s || hits.back().record != record) hits.push_back({s, record, 0});
      hits.back().spans |= uint64_t(1) << span;
    }
  }
  return hits;
}

}  // namespace maxsimd
