// Keeps the best of chunks that are scored part by part. It holds a few times as many as the answer may have, however many
// chunks there are.
#pragma once

#include "candidates/ranking.h"
#include "candidates/shortlist.h"
#include "index/selection.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace maxsimd {

/// A grouped search returns at most so many chunks of a document.
inline constexpr size_t chunksOfDocumentMost = 10;

class Best {
 public:
  virtual ~Best() = default;
  /// scores[i] belongs to candidates[i], and `position` is the place of the first among all. Parts come in order: by
  /// segment, then by chunk.
  virtual void add(std::span<const Candidate> candidates, std::span<const float> scores, uint32_t position) = 0;
  /// Best first. Among equal scores the oldest are first, and the oldest stay.
  virtual std::vector<Ranked> take() = 0;
};

/// The best `count` chunks.
class BestChunks final : public Best {
 public:
  BestChunks(size_t count, AgesOf agesOf) : count_(count), agesOf_(std::move(agesOf)) {}
  void add(std::span<const Candidate> candidates, std::span<const float> scores, uint32_t position) override;
  std::vector<Ranked> take() override;

 private:
  const size_t count_;
  const AgesOf agesOf_;
  std::vector<Ranked> kept_;
  /// Chunks with lower scores are not among the best.
  float least_ = -std::numeric_limits<float>::infinity();
};

/// The best chunks of the best `count` documents, document by document. A document is as good as its best chunk.
class BestDocuments final : public Best {
 public:
  /// Gives the record of a chunk.
  using RecordOf = std::function<uint32_t(const Candidate&)>;

  BestDocuments(size_t count, AgesOf agesOf, RecordOf recordOf)
      : count_(count), agesOf_(std::move(agesOf)), recordOf_(std::move(recordOf)) {}
  void add(std::span<const Candidate> candidates, std::span<const float> scores, uint32_t position) override;
  std::vector<Ranked> take() override;

 private:
  struct Document {
    float score;
    /// Its best chunk.
    Candidate candidate;
    /// At most `chunksOfDocumentMost`, best first.
    std::vector<Ranked> chunks;
  };

  void addChunk(const Ranked& chunk);
  void endDocument();

  const size_t count_;
  const AgesOf agesOf_;
  const RecordOf recordOf_;
  std::vector<Document> kept_;
  /// Documents with lower scores are not among the best.
  float least_ = -std::numeric_limits<float>::infinity();
  /// The best chunks of the document whose chunks are coming, and its record.
  std::vector<Ranked> current_;
  uint32_t currentRecord_ = 0;
};

}  // namespace maxsimd
