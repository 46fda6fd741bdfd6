// The chunks of all segments that are worth a closer look, by the sums of maxima over their codes.
#pragma once

#include "index/age.h"
#include "codes/codes.h"
#include "runtime/deadline.h"
#include "index/live_chunks.h"
#include "runtime/pool.h"
#include "candidates/query_tables.h"

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
};

struct Shortlisted {
  uint32_t sum;
  Candidate candidate;
};

/// How many chunks have sums of 0 to 7, 8 to 15 and so on.
using SumCounts = std::vector<uint32_t>;
inline constexpr uint32_t sumsPerCountBits = 3;
inline uint32_t sumCountsFor(uint32_t tokens) { return (tokens * entryMax >> sumsPerCountBits) + 1; }

/// From which sum on chunks are among the best `wanted`, as far as is known: it only ever rises, so that parts of a
/// search that end later hand on less.
class SumBound {
 public:
  SumBound(uint32_t tokens, size_t wanted) : wanted_(wanted), counts_(sumCountsFor(tokens), 0) {}

  /// 0 as long as fewer chunks were added than are wanted.
  uint32_t known() const { return bound_.load(std::memory_order_relaxed); }
  size_t wanted() const { return wanted_; }
  SumCounts emptyCounts() const { return SumCounts(counts_.size(), 0); }
  /// Adds a part's chunks; returns the bound.
  uint32_t add(std::span<const uint32_t> counts);

 private:
  const size_t wanted_;
  std::atomic<uint32_t> bound_{0};
  std::mutex mutex_;
  SumCounts counts_;
};

/// Chunks of one selection that lie side by side.
struct BlockSums {
  /// u32 [chunks, in whole words of the bitmap]; 0 behind the last.
  std::span<uint32_t> sums;
  const Bitmap& selected;
  /// Chunk of sums[0], at the start of a word.
  uint32_t first;
  uint32_t selection;
};

/// Those of the selected ones that are among the best of all as far as is known, in order; none whose sum is 0. Sums of
/// chunks that are not selected become 0.
std::vector<Shortlisted> bestOfBlock(const BlockSums& block, SumBound& bound, const CodeLoops& loops);

/// The best `count` of all parts, in their order, and what ties with the last of them if that is a quarter more at most:
/// else the oldest of equal sums.
std::vector<Shortlisted> bestOf(const std::vector<std::vector<Shortlisted>>& parts, uint32_t tokens, size_t count,
                             const AgesOf& agesOf);

}  // namespace maxsimd
