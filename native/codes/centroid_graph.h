// A graph over the centroids of a codebook (HNSW: Malkov and Yashunin, TPAMI 42, 2020), by which a query token finds its
// nearest centroids without products with all of them. USearch keeps the edges; the vectors stay in the codebook.
//
// It lives in memory and in no file: to build it again takes a small part of what it took to fit the codebook.
#pragma once

#include "files/memory.h"
#include "kernels/contract.h"
#include "runtime/deadline.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace maxsimd {

struct CodebookData;

/// From so many centroids on, searches walk a graph over them (decision 0008).
inline constexpr uint32_t graphCentroids = 131'072;
/// A walk for more of them takes as long as products with all.
inline constexpr uint32_t graphWantedMost = 128;

class CentroidGraph {
 public:
  /// The vectors of `data` must outlive it.
  CentroidGraph(const Kernel& kernel, const CodebookData& data, const Deadline& deadline);
  ~CentroidGraph();
  CentroidGraph(const CentroidGraph&) = delete;

  /// Some 95 in 100 of the `wanted` centroids with the largest dot products with i8 [dim], best first. Any number of
  /// threads may ask.
  std::vector<uint32_t> nearest(const int8_t* vector, uint32_t wanted) const;

 private:
  struct Edges;

  MemoryShare share_;
  std::unique_ptr<Edges> edges_;
};

}  // namespace maxsimd
