// Chunks by their codes: sums of maxima over the table entries of all codes of a chunk (PLAID, arXiv 2205.09707), and over
// the residual codes of its token vectors.
#pragma once

#include "candidates/shortlist.h"

#include <vector>

namespace maxsimd {

struct ScoredChunk {
  Candidate candidate;
  /// Approximate MaxSim; the exact one is in the same units.
  float score;
};

/// The `count` selected chunks with the largest sums of maxima over the entries of all their codes, by segment and chunk.
std::vector<Shortlisted> shortlistByCodes(const ShortlistSearch& search, uint32_t count);

/// Those of a shortlist, in the order given.
std::vector<Shortlisted> bestByEntries(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count);

/// All of them by centroid and codewords of each token vector.
std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist);

}  // namespace maxsimd
