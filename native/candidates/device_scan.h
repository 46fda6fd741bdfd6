// Candidates of segments that lie in device memory: their best chunks by exact MaxSim.
#pragma once

#include "candidates/candidates.h"
#include "candidates/shortlist.h"
#include "runtime/query.h"

#include <vector>

namespace maxsimd {

/// Scores the selections that are in device memory and large enough for it, and says so in `scored` [selections]. Returns
/// the best of them together, with their exact scores, in any order: as many as the answer may hold, and what ties with
/// the last.
std::vector<ScoredChunk> scanOnDevice(const Index& index, const IndexSearch& request, const Query& query,
                                      const std::vector<Selection>& selections, std::vector<bool>& scored);

}  // namespace maxsimd
