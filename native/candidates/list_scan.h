// The chunks that deserve a look at their codes among very many: for each query token the lists of its nearest
// centroids are walked, best first, and what a chunk gains from the first of them it is on is added up (the partial
// MaxSim of WARP, arXiv 2501.17788, with an entry below the least one looked at standing for tokens without a hit).
#pragma once

#include "candidates/shortlist.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

/// How much of an index a search by lists looks at.
struct ListBreadth {
  /// Chunks that are shortlisted.
  uint32_t chunks;
  /// Selected chunks met by each query token: with fewer, more of the best are on no list that is walked.
  float visits;
};

/// The selected chunks with the largest partial sums, by segment and chunk; fewer than asked for if the lists walked hold
/// fewer.
std::vector<Shortlisted> shortlistByLists(const ShortlistSearch& search, const ListBreadth& breadth);

/// The cost of such a shortlist and a look at all of their codes, as `codeScanCost` has it.
double listScanCost(std::span<const CodedSegment> segments, uint32_t tokens, const ListBreadth& breadth);

}  // namespace maxsimd
