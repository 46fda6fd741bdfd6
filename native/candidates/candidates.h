// The chunks a search considers: every live matching one, or those that codes keep of them.
#pragma once

#include "codes/codes.h"
#include "index/index.h"
#include "index/selection.h"
#include "runtime/pool.h"
#include "candidates/index_search.h"
#include "candidates/shortlist.h"
#include "kernels/contract.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace maxsimd {

class Query;

struct Preselected {
  /// Approximate MaxSim; the exact one is in the same units.
  float score;
  /// 0 = best.
  uint32_t rank;
};

struct CandidateSet {
  /// By segment, then chunk.
  std::vector<Candidate> candidates;
  /// One a candidate, or none if all live matching chunks are candidates.
  std::vector<Preselected> preselected;
  /// How they were found; `device` where any was found there.
  Plan plan = Plan::exact;
  /// The selections whose scores among `preselected` are exact, for the device gave them.
  std::vector<bool> scoredOnDevice;
  /// They, and the chunks that they were chosen from by exact scores.
  uint64_t considered = 0;
};

/// Every selected chunk, or the `candidateK` best by codes and every chunk of segments without codes: those can only
/// be scored exactly. Of segments in device memory the best by exact scores.
CandidateSet chooseCandidates(const Index& index, Pool& pool, const IndexSearch& request, const Query& query,
                              const std::vector<Selection>& selections);

std::vector<Age> candidateAges(const std::vector<Selection>& selections, std::span<const Candidate> candidates);

/// Asks for the memory that says where these chunks are (kernels/cache_lines.h).
void loadPlaces(const std::vector<Selection>& selections, std::span<const Candidate> candidates);

/// The token matrix of a candidate; `UnreadRecord` if its record cannot be read or is damaged.
Chunk exactChunk(const Selection& selection, uint32_t chunk);

}  // namespace maxsimd
