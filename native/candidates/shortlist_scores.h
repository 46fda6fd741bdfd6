// Closer looks at the shortlist, each at fewer of it: by the table entries of all codes, then by the residual codes of
// each token vector.
#pragma once

#include "candidates/shortlist.h"

#include <vector>

namespace maxsimd {

struct ScoredChunk {
  Candidate candidate;
  /// Approximate MaxSim; the exact one is in the same units.
  float score;
};

/// The `count` with the largest sums of maxima over the entries of all their codes, in the order given. Those maxima are
/// kept in `highest`, which what is returned refers to.
std::vector<Shortlisted> bestByEntries(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count,
                                       std::vector<uint8_t>& highest);

/// All of them by centroid and codewords of each token vector.
std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist);

}  // namespace maxsimd
