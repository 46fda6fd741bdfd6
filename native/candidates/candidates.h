// Chooses the chunks that a search scores exactly: every live matching chunk, or the best of them by codes.
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
  /// Approximate MaxSim, in the units of exact MaxSim.
  float score;
  /// Place by this score; 0 = best.
  uint32_t rank;
};

struct CandidateSet {
  /// Every live matching chunk is a candidate. Then they are not listed: there may be millions.
  bool everyChunk = false;
  /// Ordered by segment, then by chunk.
  std::vector<Candidate> candidates;
  /// One for each candidate, in the same order.
  std::vector<Preselected> preselected;
  /// How the candidates were found. `device` if a device scored any of them.
  Plan plan = Plan::exact;
  /// scoredOnDevice[s] = the device scored selection `s`, so its scores in `preselected` are exact already.
  std::vector<bool> scoredOnDevice;
  /// The number of candidates, plus the chunks that the device scored exactly and did not choose.
  uint64_t considered = 0;
};

/// Returns every selected chunk if there are few. Otherwise it returns the `candidateK` best chunks by codes, and every
/// chunk of segments without codes, which can only be scored exactly. For segments in device memory it returns the best
/// chunks by exact scores.
CandidateSet chooseCandidates(const Index& index, Pool& pool, const IndexSearch& request, const Query& query,
                              const std::vector<Selection>& selections);

/// How old the document version of each candidate is, and the place of the chunk in it.
std::vector<Age> candidateAges(const std::vector<Selection>& selections, std::span<const Candidate> candidates);

/// Prefetches the directory entries of these chunks and of their records (kernels/cache_lines.h).
void loadPlaces(const std::vector<Selection>& selections, std::span<const Candidate> candidates);

/// The token matrix of a chunk. Throws `UnreadRecord` if its record is damaged or cannot be read.
Chunk exactChunk(const Selection& selection, uint32_t chunk);

}  // namespace maxsimd
