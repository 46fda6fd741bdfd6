// The chunks that deserve a look at their codes among very many: for each query token the lists of its nearest
// centroids are walked, best first, and what a chunk gains from the first of them it is on is added up (the partial
// MaxSim of WARP, arXiv 2501.17788, with the least level looked at standing for tokens without a hit).
#pragma once

#include "engine/candidates.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// Whether walking lists is cheaper than scanning the codes of all selected chunks.
bool worthLists(const Selection& selection, uint32_t survivors);

/// The `count` selected chunks with the largest partial sums, ascending by number; those that tie with the last are
/// kept in order of their numbers.
std::vector<uint32_t> surviveLists(const Selection& selection, const Codebook::Table& table, uint32_t count, Pool& pool,
                                   const Deadline& deadline);

}  // namespace maxsimd
