// Picks chunks by the inverted lists of the centroids near each query token.
//
// For each query token it walks the lists of the nearest centroids, best first. A chunk gets the similarity of the
// first of these lists that names it. The sum over the query tokens is a partial MaxSim (WARP, arXiv 2501.17788).
#pragma once

#include "candidates/shortlist.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// Returns the `count` selected chunks with the largest partial sums, ordered by segment and chunk. Each token walks
/// `lists` lists. The result is shorter if these lists name fewer chunks.
std::vector<Shortlisted> shortlistByLists(const ShortlistSearch& search, uint32_t count, uint32_t lists);

/// How many lists of a token name `count` selected chunks, if the chunks are spread evenly over the lists.
uint32_t listsMeeting(const ShortlistSearch& search, uint32_t count);

/// Whether walking lists to find `count` chunks takes less time than scanning the codes of all selected chunks.
bool listsAreCheaper(const ShortlistSearch& search, uint32_t count);

}  // namespace maxsimd
