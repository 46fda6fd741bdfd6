// A graph over one vector a chunk of a sealed segment (USearch), for candidates among very many chunks.
//
// Built by one thread and never changed: concurrent insertion strands nodes, removal leaves stale links. Pruning
// strands a few even so: a chunk that does not find itself becomes a stray, listed beside the graph and always a
// candidate, so that no chunk is lost; a graph with many strays is refused. It lives in `<segment>.graph`, is
// derived data, and a damaged or foreign one is ignored:
//
//   offset size field
//   0      8    magic "MAXSIMGR"
//   8      4    formatVersion (1)
//   12     4    crc32c of bytes [16, 64)
//   16     8    segmentId
//   24     8    projection, id of what turned chunks into vectors
//   32     8    graphBytes
//   40     4    chunks
//   44     4    vectorBytes
//   48     4    crc32c of strays and graph
//   52     4    strays
//   56     8    zero
//   64          u32 [strays], padded to 64; then USearch's serialisation, graphBytes long
//
// Vectors are centred, int8 with one scale for the segment, and carry a float that completes each to the same
// length (the reduction of inner product to nearest neighbour of Bachrach et al., RecSys 2014): so every vector
// is nearest to itself, and a query, whose float is 0, still ranks by inner product.
#pragma once

#include "engine/deadline.h"
#include "engine/projection.h"
#include "kernels/contract.h"
#include "store/segment.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace maxsimd {

class Graph {
 public:
  /// Nothing if there is no usable graph beside the segment.
  static std::shared_ptr<const Graph> open(const Segment& segment, const Kernel& kernel,
                                           const ChunkProjection& projection, uint32_t threads);
  /// Builds, checks, saves durably and opens it. `threads` = searches at once.
  static std::shared_ptr<const Graph> build(const Segment& segment, const Kernel& kernel,
                                            const ChunkProjection& projection, uint32_t threads,
                                            const Deadline& deadline);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  uint32_t chunks() const;
  uint64_t bytes() const;

  /// Up to `count` allowed chunks nearest to a projected query, and the allowed strays, ascending; `allowed` has
  /// one entry a chunk.
  std::vector<uint32_t> nearest(std::span<const float> query, uint32_t count, const std::vector<bool>& allowed) const;

 private:
  struct State;
  explicit Graph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace maxsimd
