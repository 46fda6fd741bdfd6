// Spans of a query's words, and the documents that have them. A document has a span if it carries any of the span's terms.
#pragma once

#include "index/selection.h"

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

struct Spans {
  /// `terms` comes span by span, and termCounts[i] of them belong to span i.
  static Spans of(std::span<const Term> terms, std::span<const uint32_t> termCounts);

  uint32_t count = 0;
  /// Distinct and ascending.
  std::vector<Term> terms;
  /// The spans of terms[t] are spans[begins[t]] to spans[begins[t + 1] - 1].
  std::vector<uint32_t> begins;
  std::vector<uint32_t> spans;
};

/// Spans that a search gives bonuses for.
struct SpanMatch {
  /// At most 64.
  Spans spans;
  /// One for each span; finite and not negative.
  std::vector<float> bonuses;
};

struct SpanCounts {
  struct Span {
    /// Live documents that have it, before the filter. Above `spanDocumentsMost` only at least so many.
    uint64_t documents = 0;
    /// Chunks of those that the filter leaves, and token vectors of these chunks; 0 if there are too many documents.
    uint64_t chunks = 0;
    uint64_t rows = 0;
  };
  /// Live documents, before the filter.
  uint64_t documents = 0;
  std::vector<Span> spans;
};

/// A span that more of the live documents have says little about any of them.
constexpr uint64_t spanDocumentsMost(uint64_t documents) { return documents / 100 > 100 ? documents / 100 : 100; }

/// Throws as a search with this filter does.
SpanCounts countSpans(const Index& index, uint64_t generation, const Spans& spans, const MetadataFilter& filter,
                      const Deadline& deadline);

/// A document of a selection that has spans.
struct SpanHit {
  /// Position among the selections.
  uint32_t selection;
  uint32_t record;
  /// Bit i = span i. So there may be at most 64 spans.
  uint64_t spans;
};

/// The selected documents that have spans, by segment and then by record. Damaged records, whose terms are not known, have
/// all spans.
std::vector<SpanHit> spanHits(const std::vector<Selection>& selections, const Spans& spans, const Deadline& deadline);

}  // namespace maxsimd
