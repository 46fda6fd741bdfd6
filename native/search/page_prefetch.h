// Advice to the kernel about pages that exact scoring is about to read.
#pragma once

#include "candidates/candidates.h"

#include <vector>

namespace maxsimd {

/// Calls of a thread that ask for pages after a disk was read for it.
inline constexpr uint32_t callsAfterRead = 1'000;

/// Asks for all pages of the candidates at once: read one after the other by page faults, each waits for the disk and
/// drags a window of its neighbours along. Where everything is in memory that costs half a microsecond a candidate, up to a
/// tenth of a search, so a thread for which no disk was read for long asks for nothing until one is.
void prefetchPages(const std::vector<Selection>& selections, const Candidate* candidates, size_t count);

}  // namespace maxsimd
