// One search over a snapshot of an index: filter, choose a plan, collect candidates, score them exactly.
//
// Plans. `exact` scores every live matching chunk. `codes` scores all of them approximately by centroid codes
// and a shortlist of some thousand of all segments more finely by codewords of each token vector; the best `candidateK`
// of these exactly. `lists` finds the shortlist by the inverted lists of the query's nearest
// centroids. Chunks of a segment that has no codes yet are scored exactly in every plan. `device` scores every live matching
// chunk of the segments that lie in device memory there, exactly, and goes on with the others by one of the other plans.
// Results do not depend on the number of threads. Of equal scores the oldest chunk is first (age.h), also where topK
// cuts.
#pragma once

#include "candidates/index_search.h"
#include "index/index.h"
#include "runtime/pool.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

const char* planName(Plan plan);

inline constexpr size_t chunksOfDocumentMost = 10;

struct SearchOutcome {
  struct Result {
    uint64_t versionId;
    uint32_t chunkIndex;
    float score;
    float candidateScore;
    uint32_t candidateRank;
  };
  /// Best first, topK at most; of equal scores the oldest. Of a grouped search: the chunks of the topK documents whose best
  /// chunks are best, document by document, `chunksOfDocumentMost` at most of each.
  std::vector<Result> results;
  uint32_t candidateCount = 0;
  bool preselected = false;
  Plan plan = Plan::exact;
  /// [results x query tokens], empty unless components were asked for.
  std::vector<float> similarities;
  std::vector<uint32_t> documentTokens;
  /// Codes could not be read; they were not used, and are to be built anew.
  bool codesLost = false;
  double filterMs = 0;
  double candidatesMs = 0;
  double exactMs = 0;
};

/// `UnreadRecord` if a record that it needed cannot be read or is damaged, `AbsentParts` if it has not come yet.
SearchOutcome search(Index& index, Pool& pool, const IndexSearch& request);

}  // namespace maxsimd
