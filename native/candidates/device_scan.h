// Scores the chunks of segments that lie in device memory by exact MaxSim and returns the best.
#pragma once

#include "candidates/candidates.h"
#include "candidates/shortlist.h"
#include "runtime/query.h"

#include <vector>

namespace maxsimd {

/// Scores every selection whose segment is in device memory, if together they are large enough to be worth it. Sets
/// scored[s] for each of them. Returns their best chunks with exact scores, in any order: as many as the answer may
/// hold, and all chunks that tie with the last of these.
std::vector<ScoredChunk> scanOnDevice(const Index& index, const IndexSearch& request, const Query& query,
                                      const std::vector<Selection>& selections, std::vector<bool>& scored);

}  // namespace maxsimd
