// Closer looks at survivors, each at fewer of them: by the levels of all their codes, then by the codewords of each
// token vector.
#pragma once

#include "engine/deadline.h"
#include "engine/pool.h"
#include "engine/survivors.h"

#include <span>
#include <vector>

namespace maxsimd {

struct ScoredSurvivor {
  Candidate candidate;
  /// Approximate MaxSim; the exact one is in the same units.
  float score;
};

/// The `count` with the largest sums of maxima over the levels of all their codes, in the order given.
std::vector<Survivor> bestByLevels(std::span<const CodedSegment> segments, const std::vector<Survivor>& survivors,
                                   uint32_t tokens, size_t count, Pool& pool, const Deadline& deadline);

/// All of them by centroid and codewords of each token vector.
std::vector<ScoredSurvivor> scoreByCodewords(std::span<const CodedSegment> segments,
                                             const std::vector<Survivor>& survivors, Pool& pool,
                                             const Deadline& deadline);

}  // namespace maxsimd
