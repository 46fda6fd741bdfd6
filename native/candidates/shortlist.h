// The chunks of all segments that are worth a closer look: by sums of maxima over the table entries of all their codes
// (PLAID, arXiv 2205.09707), then over the residual codes of their token vectors.
#pragma once

#include "candidates/query_tables.h"
#include "codes/codes.h"
#include "index/age.h"
#include "index/live_chunks.h"
#include "runtime/deadline.h"
#include "runtime/pool.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace maxsimd {

/// A chunk of one of a search's selections.
struct Candidate {
  /// Position among the selections.
  uint32_t selection;
  uint32_t chunk;
};

struct Shortlisted {
  uint32_t sum;
  Candidate candidate;
};

struct ScoredChunk {
  Candidate candidate;
  /// Approximate MaxSim; the exact one is in the same units.
  float score;
};

/// For many at once: they lie far apart in memory.
using AgesOf = std::function<std::vector<Age>(std::span<const Candidate>)>;

/// A segment with codes as one search sees it.
struct CodedSegment {
  /// Position among the selections.
  uint32_t selection;
  /// The live matching ones; at least one.
  const LiveChunks* selected;
  const ChunkCodes* codes;
  /// Position of its codebook among those of the tables.
  size_t codebook;
};

/// What the looks at the chunks of one search share.
struct ShortlistSearch {
  std::span<const CodedSegment> segments;
  /// By selection; null for those without codes.
  std::vector<const CodedSegment*> bySelection;
  QueryTables& tables;
  const CodeLoops& loops;
  AgesOf agesOf;
  Pool& pool;
  const Deadline& deadline;
};

/// Drops chunks that are not among the `count` with the largest sums. Returns the least sum that stays; 0 = all stay.
uint32_t dropWorst(std::vector<Shortlisted>& shortlist, size_t count);

/// The `count` with the largest sums, in their order; the oldest of those that tie with the last.
std::vector<Shortlisted> bestBySum(std::vector<Shortlisted> shortlist, size_t count, const AgesOf& agesOf);

/// Adds the entries of the codes of these chunks to the tables.
void addEntries(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist);

/// Those of a shortlist whose codes have the largest sums of maxima, in the order given.
std::vector<Shortlisted> bestByCodes(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count);

/// All of them by centroid and codewords of each token vector.
std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist);

}  // namespace maxsimd
