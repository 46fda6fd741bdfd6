// Tells the operating system which pages exact scoring is about to read.
#pragma once

#include "candidates/candidates.h"

#include <vector>

namespace maxsimd {

/// A thread keeps asking for this many calls after its last disk read.
inline constexpr uint32_t callsAfterRead = 1'000;

/// Asks for all pages of the candidates at once. Page faults would read them one after the other, and each would wait
/// for the disk and read neighbours that nobody needs. With everything in memory, asking costs half a microsecond a
/// candidate, up to a tenth of a search. So a thread that has not read from a disk for long does not ask until it does.
void prefetchPages(const std::vector<Selection>& selections, const Candidate* candidates, size_t count);

}  // namespace maxsimd
