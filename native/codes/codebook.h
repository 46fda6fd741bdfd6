// Centroids of token vectors, in groups, and codewords for what the centroids leave over: what a segment's chunks are
// described by (codes.h).
//
// Token vectors find their centroid in two steps: the nearest groups, then the nearest centroid among those. An index
// has one codebook, fitted on all of its sealed segments (codebook_fit.h): one fitted on other text, be it of the same
// index, finds far fewer of the best chunks, and one for each segment makes tables dearer or centroids fewer.
#pragma once

#include "codes/centroid_graph.h"
#include "runtime/aligned.h"
#include "files/memory.h"
#include "kernels/contract.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace maxsimd {

inline constexpr uint32_t centroidsMax = 1u << 21;

/// Unit vectors as int8 with a scale each. Group g has the centroids [groupStarts[g], groupStarts[g + 1]).
struct CodebookData {
  uint32_t dim = 0;
  /// i8 [centroids x dim] and f16 [centroids], each followed by `readPaddingBytes`.
  std::vector<int8_t> centroids;
  std::vector<uint16_t> scales;
  /// The middle of each group, likewise.
  std::vector<int8_t> groups;
  std::vector<uint16_t> groupScales;
  std::vector<uint32_t> groupStarts;
  /// A token vector is about `share` times its centroid: mean of their dot products.
  float share = 1.0f;
  /// Token vectors of the index when it was fitted, whatever the sample; UINT32_MAX stands for more.
  uint32_t fittedRows = 0;
  /// How often the index had been fitted before. It is no part of the hash.
  uint32_t fitsBefore = 0;
  /// Codewords of what is left over: f32 [subspaces][16][subspaceDim], zeros where a subspace goes beyond dim.
  std::vector<float> codewords;

  uint32_t subspaceDim() const { return subspaceDimOf(dim); }
  uint32_t count() const { return groupStarts.back(); }
  uint32_t groupCount() const { return uint32_t(groupStarts.size()) - 1; }
};

/// For each of `count` vectors (i8 [count x dim]) the row of `among` with the largest similarity, the lowest of equals.
/// Similarity = dot product times the scale of the row.
void nearestOf(const Kernel& kernel, uint32_t dim, const int8_t* vectors, uint32_t count, const Chunk& among,
               float* similarities, uint32_t* rows);

/// Token vectors whose codewords are looked for together.
inline constexpr uint32_t rowLanes = 16;

/// The remainders of at most `rowLanes` rows beyond their centroids: f32 [subspaces * width][rowLanes], a row a lane.
void remaindersOf(const CodebookData& data, const int8_t* vectors, const uint16_t* scales, const uint32_t* codes,
                  uint32_t rows, float* columns);

/// Half of the squared length of each codeword, f32 [16][width].
std::vector<float> halfSquaresOf(std::span<const float> words, uint32_t width);

/// nearest[r] = the codeword nearest to row r: the one with the largest dot(row r, codeword) - halfSquare, the first of
/// equal ones. `columns` is f32 [width][rowLanes], one row a lane, `words` f32 [16][width].
void nearestCodewords(const float* columns, const float* words, uint32_t width, const float* halfSquares,
                      uint32_t* nearest);

class Codebook {
 public:
  /// Sizes must agree, scales be positive and finite and groups cover all centroids in order: else `corrupt`.
  Codebook(const Kernel& kernel, CodebookData data);

  const CodebookData& data() const { return data_; }
  uint32_t count() const { return data_.count(); }
  /// The hash of the content.
  uint64_t hash() const { return hash_; }

  /// codes[r] = the centroid with the largest dot product with row r, among those of the nearest groups.
  /// `vectors` is i8 [rows x dim] and followed by `readPaddingBytes`.
  void assign(const int8_t* vectors, uint32_t rows, uint32_t* codes) const;

  /// The nearest codewords of what the centroids leave over: u8 [rows x residualBytes]. `scales` is f16 [rows].
  void encode(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint32_t* codes,
              uint8_t* bytes) const;

  /// Mean dot product of token vectors with their centroids, which `assign` found: `data().share` for those it was fitted
  /// on, less for others.
  double share(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint32_t* codes) const;

  /// The graph over the centroids; null until `buildGraph` has made it.
  const CentroidGraph* graph() const { return graph_->built.load(std::memory_order_acquire); }
  /// Builds it, unless it is there. Another call waits meanwhile.
  const CentroidGraph& buildGraph(const Deadline& deadline) const;

 private:
  struct Graph {
    std::mutex building;
    std::unique_ptr<const CentroidGraph> own;
    std::atomic<const CentroidGraph*> built = nullptr;
  };

  /// The rows that have each group among their nearest.
  std::vector<std::vector<uint32_t>> probing(const int8_t* vectors, uint32_t rows) const;

  const Kernel& kernel_;
  CodebookData data_;
  MemoryShare share_;
  uint64_t hash_;
  /// Half the squared lengths of the codewords.
  std::vector<float> halfSquares_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
};

}  // namespace maxsimd
