// Advice to the kernel about pages that exact scoring is about to read.
#pragma once

#include "candidates/candidates.h"

#include <vector>

namespace maxsimd {

/// Asks for all pages of the candidates at once where some are not in memory: read one after the other by
/// page faults, each waits for the disk and drags a window of its neighbours along. Looks at a sample first,
/// so that it costs microseconds where everything is in memory. Does nothing for sets so large that they are
/// scanned rather than picked from.
void prefetchCold(const std::vector<Selection>& selections, const std::vector<Candidate>& candidates);

}  // namespace maxsimd
