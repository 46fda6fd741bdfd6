// The chunks of all segments that are worth a closer look, by the sums of maxima over their codes.
#pragma once

#include "candidates/query_tables.h"
#include "codes/codes.h"
#include "index/age.h"
#include "index/live_chunks.h"
#include "runtime/deadline.h"
#include "runtime/pool.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace maxsimd {

/// A chunk of one of a search's selections.
struct Candidate {
  /// Position among the selections.
  uint32_t selection;
  uint32_t chunk;
};

/// A segment with codes as one search sees it.
struct CodedSegment {
  /// Position among the selections.
  uint32_t selection;
  /// The live matching ones; at least one.
  const LiveChunks* selected;
  const ChunkCodes* codes;
  const CodebookTable* table;
};

/// For many at once: they lie far apart in memory.
using AgesOf = std::function<std::vector<Age>(std::span<const Candidate>)>;

/// What the looks at the chunks of one search share.
struct ShortlistSearch {
  std::span<const CodedSegment> segments;
  /// Tokens of the query.
  uint32_t tokens;
  const CodeLoops& loops;
  AgesOf agesOf;
  Pool& pool;
  const Deadline& deadline;
  /// Where entries are computed on demand; null where all are there.
  QueryTables* onDemand;
};

struct Shortlisted {
  uint32_t sum;
  Candidate candidate;
};

/// The best `wanted` of parts that threads add in any order. A part leaves out what cannot be among them any more, as far
/// as is known by then.
class BestOfParts {
 public:
  BestOfParts(uint32_t tokens, size_t wanted, size_t parts)
      : wanted_(wanted), counts_(((tokens * entryMax + 1) >> sumsPerCountBits) + 1, 0), parts_(parts) {}

  /// Chunks `first` and following of a segment, by their sums. Chunks that are not selected, or have no sum, are left out.
  void add(size_t part, const CodedSegment& coded, uint32_t first, std::span<const uint32_t> sums);

  /// The best of all, by part and chunk; the oldest of those that tie with the last.
  std::vector<Shortlisted> best(const AgesOf& agesOf) const;

 private:
  /// Sums are counted in steps of 8.
  static constexpr uint32_t sumsPerCountBits = 3;

  /// The least sum that may be among the best, once these are counted too.
  uint32_t count(std::span<const uint32_t> counts);

  const size_t wanted_;
  std::atomic<uint32_t> least_{1};
  std::mutex mutex_;
  std::vector<uint32_t> counts_;
  std::vector<std::vector<Shortlisted>> parts_;
};

/// The best `count`, in their order; the oldest of those that tie with the last.
std::vector<Shortlisted> bestOf(std::vector<Shortlisted> shortlist, size_t count, const AgesOf& agesOf);

}  // namespace maxsimd
