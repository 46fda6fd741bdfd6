// A codebook describes token vectors in few bytes: by the nearest centroid, and by codewords for the difference between
// the vector and its centroid (codes.h).
//
// Centroids are in groups. A token vector finds its centroid in two steps: first the nearest groups, then the nearest
// centroid in these groups.
//
// An index has one codebook, which is fitted on all of its sealed segments (codebook_fit.h). A codebook that was fitted
// on other text finds far fewer of the best chunks, even if that text is part of the same index. With a codebook for
// each segment a query would need more tables, or there would be fewer centroids.
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
  /// The centre of each group, in the same form.
  std::vector<int8_t> groups;
  std::vector<uint16_t> groupScales;
  std::vector<uint32_t> groupStarts;
  /// Mean dot product of a token vector with its centroid. So a token vector is about `share` times its centroid.
  float share = 1.0f;
  /// Number of token vectors that the index had when the codebook was fitted (not the size of the sample). UINT32_MAX
  /// stands for this number or more.
  uint32_t fittedRows = 0;
  /// Number of codebooks that the index had before this one. It is no part of the hash.
  uint32_t fitsBefore = 0;
  /// Orthonormal directions along which residuals are largest, as rows in the same form. Codewords describe the components
  /// of a residual along them, and nothing of what lies beyond. Empty in codebooks that earlier releases can read: their
  /// codewords describe the components themselves.
  std::vector<int8_t> directions;
  std::vector<uint16_t> directionScales;
  /// Codewords of residuals: f32 [subspaces][16][subspaceDim]. Components beyond the last direction are zeros.
  std::vector<float> codewords;

  /// Components of a residual that codewords describe.
  uint32_t components() const {
    return directionScales.empty() ? dim : uint32_t(directionScales.size() - readPaddingBytes);
  }
  uint32_t subspaceDim() const { return subspaceDimOf(components()); }
  uint32_t count() const { return groupStarts.back(); }
  uint32_t groupCount() const { return uint32_t(groupStarts.size()) - 1; }
};

/// Finds for each of `count` vectors (i8 [count x dim]) the row of `among` with the largest similarity, which is the
/// dot product times the scale of the row. Among equal rows it takes the first.
void nearestOf(const Kernel& kernel, uint32_t dim, const int8_t* vectors, uint32_t count, const Chunk& among,
               float* similarities, uint32_t* rows);

/// Number of token vectors whose codewords are searched together.
inline constexpr uint32_t rowLanes = 16;

/// Computes the residuals of at most `rowLanes` rows: each row minus `share` times its centroid. The result is
/// transposed, one lane for each row: f32 [dim][rowLanes].
void remaindersOf(const CodebookData& data, const int8_t* vectors, const uint16_t* scales, const uint32_t* codes,
                  uint32_t rows, float* columns);

/// Computes the components of these residuals that codewords describe: f32 [components][rowLanes].
void componentsOf(const Kernel& kernel, const CodebookData& data, const int8_t* vectors, const uint16_t* scales,
                  const uint32_t* codes, uint32_t rows, float* columns);

/// Half of the squared length of each codeword in `words`, which is f32 [codewords][width].
std::vector<float> halfSquaresOf(std::span<const float> words, uint32_t width);

/// nearest[r] = the codeword nearest to row r, which has the largest dot(row r, codeword) - halfSquare. Among equal
/// codewords it takes the first. `columns` is f32 [width][rowLanes], one lane for each row. `words` is f32 [16][width].
void nearestCodewords(const float* columns, const float* words, uint32_t width, const float* halfSquares,
                      uint32_t* nearest);

class Codebook {
 public:
  /// Throws `corrupt` unless all sizes agree, scales are positive and finite, and the groups cover all centroids in
  /// order.
  Codebook(const Kernel& kernel, CodebookData data, MemoryOwner owner = nobody());

  const CodebookData& data() const { return data_; }
  uint32_t count() const { return data_.count(); }
  /// The hash of the content.
  uint64_t hash() const { return hash_; }
  const MemoryOwner& owner() const { return graph_->owner; }

  /// codes[r] = the centroid with the largest dot product with row r, among those of the nearest groups.
  /// `vectors` is i8 [rows x dim] and followed by `readPaddingBytes`.
  void assign(const int8_t* vectors, uint32_t rows, uint32_t* codes) const;

  /// Finds the nearest codewords of the residual of each row: u8 [rows x residualBytes]. `scales` is f16 [rows].
  void encode(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint32_t* codes,
              uint8_t* bytes) const;

  /// Mean dot product of token vectors with the centroids that `assign` found for them. It is `data().share` for the
  /// vectors that the codebook was fitted on, and less for other text. So it shows whether the codebook still describes
  /// an index.
  double share(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint32_t* codes) const;

  /// The graph over the centroids; null until `buildGraph` has made it, and again once room in memory was needed.
  std::shared_ptr<const CentroidGraph> graph() const { return graph_->get(); }
  /// Builds the graph unless it exists. A second caller waits for the first.
  std::shared_ptr<const CentroidGraph> buildGraph(const Deadline& deadline) const;

 private:
  class Graph : public Reclaimable {
   public:
    using Reclaimable::Reclaimable;
    std::shared_ptr<const CentroidGraph> get() const;
    void set(std::shared_ptr<const CentroidGraph> built);
    uint64_t reclaimableBytes() const override { return bytes_; }
    /// Its memory is given back once no search walks it any more.
    void reclaim(const MemoryNeed&) override { set(nullptr); }

    std::mutex building;

   private:
    mutable std::mutex mutex_;
    std::shared_ptr<const CentroidGraph> built_;
    std::atomic<uint64_t> bytes_{0};
  };

  /// probing(...)[g] = the rows that have group `g` among their nearest groups.
  std::vector<std::vector<uint32_t>> probing(const int8_t* vectors, uint32_t rows) const;

  const Kernel& kernel_;
  CodebookData data_;
  MemoryShare share_;
  uint64_t hash_;
  /// Half the squared lengths of the codewords.
  std::vector<float> halfSquares_;
  std::shared_ptr<Graph> graph_;
};

}  // namespace maxsimd
