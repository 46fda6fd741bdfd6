// Closer looks at survivors, each at fewer of them: by the levels of all their codes, then by the codewords of each
// token vector.
#pragma once

#include "candidates/shortlist.h"

#include <vector>

namespace maxsimd {

struct ScoredSurvivor {
  Candidate candidate;
  /// Approximate MaxSim; the exact one is in the same units.
  float score;
};

/// The `count` with the largest sums of maxima over the levels of all their codes, in the order given.
std::vector<Survivor> bestByLevels(const SurvivorSearch& search, const std::vector<Survivor>& survivors, size_t count);

/// All of them by centroid and codewords of each token vector.
std::vector<ScoredSurvivor> scoreByCodewords(const SurvivorSearch& search, const std::vector<Survivor>& survivors);

}  // namespace maxsimd
