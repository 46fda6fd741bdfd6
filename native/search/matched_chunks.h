// The chunks of the documents that have a span of the query (index/spans.h). A search scores all of them, whether they are
// candidates or not. The best chunk of each of these documents gets the bonuses of the document's spans.
#pragma once

#include "candidates/candidates.h"
#include "index/spans.h"
#include "search/best.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace maxsimd {

struct MatchedChunk {
  static constexpr uint32_t noPosition = std::numeric_limits<uint32_t>::max();

  /// Without a bonus.
  float maxsim = 0;
  /// Position among the candidates; `noPosition` if it is none.
  uint32_t position = noPosition;
  /// Bit i = span i has given it a bonus.
  uint64_t spans = 0;
  bool isScored = false;
};

class MatchedChunks {
 public:
  MatchedChunks(const std::vector<Selection>& selections, const SpanMatch& match, const Deadline& deadline);

  /// By segment and then by chunk.
  std::span<const Candidate> chunks() const { return chunks_; }
  /// Forgets all scores, before other candidates are chosen.
  void restart();
  /// Keeps the scores of the candidates that are matched chunks, and gives the others to `best`. The arguments are those of
  /// `Best::add`.
  void addOthers(std::span<const Candidate> candidates, std::span<const float> scores, uint32_t position, Best& best);
  /// The chunks that have no score yet: after all candidates, those that are none.
  std::vector<Candidate> unscored() const;
  /// Takes the scores of the first of them.
  void addScores(std::span<const float> scores);
  /// Gives all chunks to `best`, with their bonuses. All have scores.
  void addAll(Best& best);
  /// Null if it is no matched chunk.
  const MatchedChunk* find(const Candidate& chunk) const;

 private:
  struct Document {
    /// Its chunks are chunks_[first] to chunks_[end - 1].
    size_t first, end;
    uint64_t spans;
    float bonus;
  };

  std::vector<Document> documents_;
  std::vector<Candidate> chunks_;
  /// One for each chunk.
  std::vector<MatchedChunk> matched_;
};

}  // namespace maxsimd
