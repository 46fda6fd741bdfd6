// Finds the centroids nearest to a query token by a graph, without computing the products with all centroids (HNSW:
// Malkov and Yashunin, TPAMI 42, 2020). USearch keeps the edges. The vectors stay in the codebook.
//
// The graph is kept in memory alone, and dropped when room is needed there. Building it again takes a small part of the
// time that fitting the codebook took.
#pragma once

#include "files/memory.h"
#include "kernels/contract.h"
#include "runtime/deadline.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace maxsimd {

struct CodebookData;

/// Searches walk a graph if a codebook has at least this many centroids (decision 0008).
inline constexpr uint32_t graphCentroids = 131'072;
/// A walk that finds more centroids than this takes as long as the products with all.
inline constexpr uint32_t graphWantedMost = 128;

class CentroidGraph {
 public:
  /// The vectors of `data` must outlive it.
  CentroidGraph(const Kernel& kernel, const CodebookData& data, const MemoryOwner& owner, const Deadline& deadline);
  ~CentroidGraph();
  CentroidGraph(const CentroidGraph&) = delete;

  /// Returns the `wanted` centroids with the largest dot products with `vector` (i8 [dim]), best first. The graph
  /// misses some 5 in 100 of them. Any number of threads may call it.
  std::vector<uint32_t> nearest(const int8_t* vector, uint32_t wanted) const;
  uint64_t bytes() const { return share_.bytes(); }

 private:
  struct Edges;

  MemoryShare share_;
  std::unique_ptr<Edges> edges_;
};

}  // namespace maxsimd
