// A query against the codebooks of all segments it searches: entries in steps that are common to them, so that sums
// of one segment can be compared with sums of another.
//
//   contribution of centroid k to query token i = share * dot(query[i], centroid[k]), in steps above the token's floor
//
// The approximate MaxSim of a chunk is a sum of maxima over the entries of its few codes (PLAID, arXiv 2205.09707), a
// finer one over entry plus codewords of each token vector.
#pragma once

#include "runtime/aligned.h"
#include "codes/codebook.h"
#include "index/bitmap.h"
#include "runtime/deadline.h"
#include "runtime/pool.h"
#include "runtime/query.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t entryMax = 255;

/// What a query makes of one codebook.
struct CodebookTable {
  /// u8 [codeMask + 1][tokensPadded]; entries of codes that there are not, and of padding tokens, are 0.
  AlignedVector<uint8_t> entries;
  /// entry = (similarity - floor) * factor, of each token: f32 [query.tokensPadded].
  std::vector<float> floors, factors;
  /// As ResidualTable has them.
  AlignedVector<uint8_t> residuals;
  AlignedVector<uint8_t> margins;
  /// Refers to the three above.
  ResidualTable residual;
  /// finer score = residualBase + residualStep * sum of residual maxima; in the units of exact MaxSim.
  float residualBase;
  float residualStep;
};

class QueryTables {
 public:
  /// `vectors` is the query as f32 [tokens x dim], `offsets` f32 [tokens].
  QueryTables(const Kernel& kernel, std::span<const float> vectors, std::span<const float> offsets, uint32_t dim,
              std::span<const Codebook* const> codebooks, Pool& pool);

  /// Computes the entries of all centroids. Until then all are 0.
  void addAll();
  /// Computes those of the centroids that graphs find near each token, `wanted` of each codebook.
  void addNearest(uint32_t wanted, const Deadline& deadline);
  /// Computes those of these centroids of a codebook.
  void add(size_t codebook, const Bitmap& centroids);

  size_t size() const { return tables_.size(); }
  uint32_t tokens() const { return tokens_; }
  /// The table of the codebook at this position; it lives as long as the tables do.
  const CodebookTable& of(size_t codebook) const { return tables_[codebook]; }
  /// approximate score = base + step * sum of maxima
  float base() const { return base_; }
  float step() const { return step_; }

 private:
  void setSteps(std::span<const float> vectors);
  void fillEntries(const CodebookTable& table, const Chunk& centroids, uint8_t* entries) const;
  void setResiduals(const CodebookData& data, std::span<const float> vectors, CodebookTable& table) const;

  const Kernel& kernel_;
  Pool& pool_;
  const std::span<const Codebook* const> codebooks_;
  const Query smallQuery_;
  const PackedQuery& query_;
  const uint32_t tokens_;
  /// The length of a table's rows: `tableTokens` of the query's.
  const uint32_t tokensPadded_;
  /// One for each token, in the units of exact MaxSim: f32 [query.tokensPadded].
  std::vector<float> floors_;
  /// How long the query's vectors are: f32 [tokens].
  std::vector<float> lengths_;
  float base_ = 0.0f;
  float step_ = 0.0f;
  std::vector<CodebookTable> tables_;
};

}  // namespace maxsimd
