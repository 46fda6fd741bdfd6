// Lookup tables of a query: its similarities with the centroids of every codebook, as bytes.
//
//   entry of centroid k for query token i = (share * dot(query[i], centroid[k]) - floor of token i) / step
//
// All codebooks use the same floors and the same step, so sums from different segments can be compared. The approximate
// MaxSim of a chunk is, summed over the query tokens, the largest entry among its codes (PLAID, arXiv 2205.09707). A
// finer one takes for each token vector its entry plus the similarities of its codewords.
#pragma once

#include "runtime/aligned.h"
#include "codes/codebook.h"
#include "runtime/bitmap.h"
#include "runtime/deadline.h"
#include "runtime/pool.h"
#include "runtime/query.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t entryMax = 255;

/// The tables of a query for one codebook.
struct CodebookTable {
  /// u8 [codeMask + 1][tokensPadded]. Entries beyond the last centroid, and those of padding tokens, are 0.
  AlignedVector<uint8_t> entries;
  /// entry = (similarity - floor) * factor. One floor and one factor for each token: f32 [query.tokensPadded].
  std::vector<float> floors, factors;
  /// The tables that `ResidualTable` points to.
  AlignedVector<uint8_t> residuals;
  AlignedVector<uint8_t> margins;
  /// Points to `entries`, `residuals` and `margins`.
  ResidualTable residual;
  /// The finer score, in the units of exact MaxSim, is residualBase + residualStep * the sum of the residual maxima.
  float residualBase;
  float residualStep;
};

class QueryTables {
 public:
  /// `vectors` is the query as f32 [tokens x dim], `offsets` f32 [tokens].
  QueryTables(const Kernel& kernel, std::span<const float> vectors, std::span<const float> offsets, uint32_t dim,
              std::span<const Codebook* const> codebooks, Pool& pool);

  /// Computes the entries of all centroids. Before the first `add` all entries are 0.
  void addAll();
  /// Finds the `wanted` centroids nearest to each token by the graphs of the codebooks, and computes their entries.
  void addNearest(uint32_t wanted, std::span<const std::shared_ptr<const CentroidGraph>> graphs,
                  const Deadline& deadline);
  /// Computes the entries of the given centroids of one codebook.
  void add(size_t codebook, const Bitmap& centroids);

  size_t size() const { return tables_.size(); }
  uint32_t tokens() const { return tokens_; }
  /// The table of the codebook at this position. It lives as long as this object.
  const CodebookTable& of(size_t codebook) const { return tables_[codebook]; }
  /// Approximate score of a chunk = base + step * its sum of maxima.
  float base() const { return base_; }
  float step() const { return step_; }

 private:
  void setSteps(std::span<const float> vectors);
  void fillEntries(const CodebookTable& table, const Chunk& centroids, uint8_t* entries) const;
  std::vector<float> columnsOf(const CodebookData& data, std::span<const float> vectors) const;
  void setResiduals(const CodebookData& data, std::span<const float> vectors, CodebookTable& table) const;

  const Kernel& kernel_;
  Pool& pool_;
  const std::span<const Codebook* const> codebooks_;
  const Query smallQuery_;
  const PackedQuery& query_;
  const uint32_t tokens_;
  /// Length of a row of the tables: the number of tokens, rounded up by `tableTokens`.
  const uint32_t tokensPadded_;
  /// The similarity at which the entries of each token begin, in the units of exact MaxSim: f32 [query.tokensPadded].
  std::vector<float> floors_;
  /// Lengths of the query's vectors: f32 [tokens].
  std::vector<float> lengths_;
  float base_ = 0.0f;
  float step_ = 0.0f;
  std::vector<CodebookTable> tables_;
};

}  // namespace maxsimd
