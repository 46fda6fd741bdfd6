// One search over a snapshot of an index: it filters, chooses a plan, collects candidates and scores them exactly.
//
// Plans: `exact` scores every live matching chunk. `codes` scores all of them approximately by centroid codes, then a
// shortlist of some thousand of all segments more finely by residual codes, and the best `candidateK` of these exactly.
// `lists` finds the shortlist by the inverted lists of the centroids nearest to the query; `graph` does so, too, and finds
// these centroids by a graph instead of products with all. `device` scores every live
// matching chunk of the segments in device memory there, exactly, and the others by one of the other plans. Every plan
// scores chunks of segments without codes exactly. Results do not depend on the number of threads. Among equal scores
// the oldest chunk is first (age.h), also where topK cuts.
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
    /// Where the chunk lies in the text of its document, in code points; 0 and 0 if that is unknown.
    uint32_t rangeStart;
    uint32_t rangeEnd;
  };
  /// Best first, at most topK; among equal scores the oldest first. A grouped search returns the chunks of the best
  /// topK documents, document by document, at most `chunksOfDocumentMost` of each.
  std::vector<Result> results;
  uint32_t candidateCount = 0;
  bool preselected = false;
  Plan plan = Plan::exact;
  /// [results x query tokens], empty unless components were asked for.
  std::vector<float> similarities;
  std::vector<uint32_t> documentTokens;
  /// Packed places of the rows of each result, likewise; empty where they are unknown.
  std::vector<std::vector<uint8_t>> rowPlaces;
  /// Codes could not be read and were not used: build them again.
  bool codesLost = false;
  double filterMs = 0;
  double candidatesMs = 0;
  double exactMs = 0;
};

/// Throws `UnreadRecord` if a record that it needed cannot be read or is damaged, `AbsentParts` if it has not been
/// fetched, `deadline_exceeded` if the deadline passes, `values_missing` if a range lacks values.
SearchOutcome search(Index& index, Pool& pool, const IndexSearch& request);

}  // namespace maxsimd
