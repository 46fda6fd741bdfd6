// The chunks a search considers: first every live matching one, then those that graphs and codes keep.
#pragma once

#include "engine/index.h"
#include "engine/pool.h"
#include "kernels/contract.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace maxsimd {

struct SearchRequest;

struct Candidate {
  /// Position in the snapshots.
  uint32_t segment;
  uint32_t chunk;
};

struct CandidateSet {
  std::vector<SegmentSnapshot> snapshots;
  /// By segment, then chunk.
  std::vector<Candidate> candidates;
  /// Token vectors of all candidates.
  uint64_t rows = 0;

  /// The token matrix of a candidate; `corrupt` if its record is damaged.
  Chunk exactChunk(const Candidate& candidate) const;
};

/// Chunks of records with born <= generation < died that carry all terms.
CandidateSet collectLive(std::vector<SegmentSnapshot> snapshots, uint64_t generation,
                         const std::optional<std::vector<Term>>& terms, const Deadline& deadline);

/// Whether scanning the codes of all candidates would take longer than asking graphs.
bool worthGraphs(const CandidateSet& set);

/// Replaces the candidates of segments with a graph by the nearest of them in that graph.
void keepGraphNeighbours(CandidateSet& set, const Index& index, Pool& pool, const SearchRequest& request);

struct Preselected {
  /// Approximate MaxSim; the exact one is in the same units.
  float score;
  /// 0 = best.
  uint32_t rank;
};

/// Keeps the `candidateK` best by codes, and every chunk written without codes of this codebook: those can
/// only be scored exactly. Returns score and rank of each one kept.
std::vector<Preselected> keepBestByCodes(CandidateSet& set, const Codebook& codebook, Pool& pool,
                                         const SearchRequest& request, const PackedQuery& query);

}  // namespace maxsimd
