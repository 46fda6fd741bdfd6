// The chunks that deserve a finer look, by the codes of every selected one: a sum of maxima over entries (PLAID, arXiv
// 2205.09707).
#pragma once

#include "candidates/shortlist.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

/// The `count` selected chunks with the largest sums, by segment and chunk.
std::vector<Shortlisted> shortlistByCodes(const ShortlistSearch& search, uint32_t count);

/// Nanoseconds of processor time, on a machine that makes the ratio to `listScanCost` right.
double codeScanCost(std::span<const CodedSegment> segments, uint32_t tokens);

}  // namespace maxsimd
