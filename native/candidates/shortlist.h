// Scores chunks of all segments approximately, in two steps. First by codes: for each query token the largest table
// entry among the codes of the chunk, summed over the query (PLAID, arXiv 2205.09707). Then, for the chunks that
// remain, by residual codes, which describe each token vector more finely.
#pragma once

#include "candidates/query_tables.h"
#include "codes/codes.h"
#include "index/age.h"
#include "index/live_chunks.h"
#include "runtime/deadline.h"
#include "runtime/pool.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace maxsimd {

/// A chunk of one of the selections of a search. A selection is a segment with its live matching chunks.
struct Candidate {
  /// Position among the selections.
  uint32_t selection;
  uint32_t chunk;

  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

struct Shortlisted {
  uint32_t sum;
  Candidate candidate;
};

struct ScoredChunk {
  Candidate candidate;
  /// Approximate MaxSim, in the units of exact MaxSim.
  float score;
};

/// Returns the ages of many candidates at once. Ages lie far apart in memory, so reading them together is faster.
using AgesOf = std::function<std::vector<Age>(std::span<const Candidate>)>;

/// A segment with codes as one search sees it.
struct CodedSegment {
  /// Position among the selections.
  uint32_t selection;
  /// The live matching chunks; at least one.
  const LiveChunks* selected;
  const ChunkCodes* codes;
  /// Position of its codebook in `QueryTables`.
  size_t codebook;
};

/// The parts that all steps of one search use.
struct ShortlistSearch {
  std::span<const CodedSegment> segments;
  /// By position of the selection; null for a segment without codes.
  std::vector<const CodedSegment*> bySelection;
  QueryTables& tables;
  const CodeLoops& loops;
  AgesOf agesOf;
  Pool& pool;
  const Deadline& deadline;
};

/// Drops chunks whose sum is below that of the `count` best. Chunks that tie with the last of these stay. Returns the
/// least sum that stays, or 0 if all chunks stay.
uint32_t dropWorst(std::vector<Shortlisted>& shortlist, size_t count);

/// Keeps the `count` chunks with the largest sums, in their order. If several tie for the last place, the oldest of
/// them stay.
std::vector<Shortlisted> bestBySum(std::vector<Shortlisted> shortlist, size_t count, const AgesOf& agesOf);

/// Computes the table entries of all codes that these chunks have.
void addEntries(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist);

/// Scores the chunks by codes and keeps the `count` best, in the order given.
std::vector<Shortlisted> bestByCodes(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count);

/// Scores all chunks of the shortlist by residual codes: the centroid and the codewords of each token vector.
std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist);

}  // namespace maxsimd
