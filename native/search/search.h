// One search over a snapshot of an index: it filters, chooses a plan, collects candidates and scores them exactly.
//
// Plans: `exact` scores every live matching chunk. `codes` scores all of them approximately by centroid codes, then a
// shortlist of some thousand of all segments more finely by residual codes, and the best `candidateK` of these exactly.
// `lists` finds the shortlist by the inverted lists of the centroids nearest to the query; `graph` does so, too, and finds
// these centroids by a graph instead of products with all. `device` scores every live
// matching chunk of the segments in device memory there, exactly, and the others by one of the other plans. Every plan
// scores chunks of segments without codes exactly. Results do not depend on the number of threads. Among equal scores
// the oldest chunk is first (age.h), also where topK cuts.
//
// With `match` the chunks of documents that have a span of the query are scored beside the candidates, in every plan, and
// their bonuses are added before the best are chosen (matched_chunks.h).
//
// A search may give way and go on later. It has seen its snapshot by then: the live matching chunks are chosen in the
// first step, and the search holds their segments. So its results are those of a search that did not give way, whatever
// has been written, merged or dropped meanwhile.
#pragma once

#include "candidates/candidates.h"
#include "candidates/index_search.h"
#include "index/index.h"
#include "runtime/pool.h"
#include "runtime/query.h"
#include "search/best.h"
#include "search/matched_chunks.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace maxsimd {

const char* planName(Plan plan);

struct SearchOutcome {
  struct Result {
    uint64_t versionId;
    uint32_t chunkIndex;
    float score;
    /// Without the bonus.
    float maxsim;
    /// Bit i = span i gave it a bonus.
    uint64_t spans;
    /// If candidates were preselected; NaN and UINT32_MAX for a chunk that is none of them.
    float candidateScore;
    uint32_t candidateRank;
    /// Where the chunk lies in the text of its document, in code points; 0 and 0 if that is unknown.
    uint32_t rangeStart;
    uint32_t rangeEnd;
  };
  /// Best first, at most topK after those that are skipped; among equal scores the oldest first. A grouped search returns the chunks
  /// of so many documents, document by document, at most `chunksOfDocumentMost` of each.
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

class Search {
 public:
  /// `index` and `pool` must outlive the calls of `run`.
  Search(Index& index, Pool& pool, IndexSearch request);

  /// Goes on, by one step at least, and gives way once `until` has passed. True = the search has ended.
  /// Candidates are chosen in one step; exact scoring gives way between blocks of chunks.
  ///
  /// Throws `UnreadRecord` if a record that it needed cannot be read or is damaged, `AbsentParts` if it has not been
  /// fetched, `deadline_exceeded` if the deadline passes, `values_missing` if a range lacks values. After that, and
  /// after its end, a search does not go on.
  bool run(Clock::time_point until = Clock::time_point::max());
  SearchOutcome& outcome() { return outcome_; }

 private:
  enum class Step { filter, choose, score, match, rank };

  void filter();
  void choose();
  /// Scores the next part of the candidates, or as much of it as there is time for.
  void score(Clock::time_point until);
  std::span<const Candidate> nextPart();
  /// Does the same for the matched chunks that are no candidates, and adds the bonuses in the end.
  void scoreMatched(Clock::time_point until);
  /// False if the candidates must be more.
  bool rank();
  bool widen();
  void leaveOut();
  void answer();
  SearchOutcome::Result resultOf(const Ranked& ranked) const;

  Index& index_;
  Pool& pool_;
  IndexSearch request_;
  Step step_ = Step::filter;
  SearchOutcome outcome_;
  std::vector<Selection> selections_;
  std::optional<Query> query_;
  const AgesOf agesOf_ = [this](std::span<const Candidate> of) { return candidateAges(selections_, of); };
  /// The most candidates that a grouped search may take.
  uint32_t widestCandidateK_ = 0;
  /// Empty if no document has a span.
  std::optional<MatchedChunks> matched_;
  CandidateSet set_;
  /// The device was wrong, so the candidates are chosen a second time.
  bool deviceWasWrong_ = false;
  /// How many candidates are scored.
  uint32_t scored_ = 0;
  /// The candidates that are scored next: a part of those in `set_`, or of all chunks.
  std::span<const Candidate> part_;
  /// A part of all chunks, and where the next one begins.
  std::vector<Candidate> gathered_;
  Candidate next_{};
  std::unique_ptr<Best> best_;
  std::vector<Ranked> top_;
};

/// Runs a whole search.
SearchOutcome search(Index& index, Pool& pool, const IndexSearch& request);

}  // namespace maxsimd
