// The chunks that deserve a look at their codes among very many: for each query token the lists of its nearest
// centroids are walked, best first, and what a chunk gains from the first of them it is on is added up (the partial
// MaxSim of WARP, arXiv 2501.17788).
#pragma once

#include "candidates/shortlist.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// The `count` selected chunks with the largest partial sums over `lists` lists a token, by segment and chunk; fewer if
/// these hold fewer.
std::vector<Shortlisted> shortlistByLists(const ShortlistSearch& search, uint32_t count, uint32_t lists);

/// Lists of a token that meet so many selected chunks, were chunks spread evenly.
uint32_t listsMeeting(const ShortlistSearch& search, uint32_t count);

/// Whether that takes less time than a scan of the codes of all selected chunks.
bool listsAreCheaper(const ShortlistSearch& search, uint32_t count);

}  // namespace maxsimd
