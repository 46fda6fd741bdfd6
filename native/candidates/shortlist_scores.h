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

/// The highest entry of each chunk's codes for each query token: u8 [chunks of a shortlist][tokensPadded].
using HighestEntries = std::vector<uint8_t>;

/// The `count` with the largest sums of maxima over the entries of all their codes, in the order given, and those maxima.
std::vector<Shortlisted> bestByEntries(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count,
                                       HighestEntries& highest);

/// All of them by centroid and codewords of each token vector; `highest` is theirs, or empty where it is not known.
std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist,
                                              const HighestEntries& highest);

}  // namespace maxsimd
