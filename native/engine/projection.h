// One vector a chunk: what graphs of chunks are built over. A query's vector is compared with a chunk's by
// inner product; the closer that is to the MaxSim, the fewer candidates are needed. Replaceable: a graph
// records the id of the projection it was built with and is not used with another.
#pragma once

#include "kernels/contract.h"

#include <cstdint>
#include <span>

namespace maxsimd {

class ChunkProjection {
 public:
  virtual ~ChunkProjection() = default;
  virtual uint64_t id() const = 0;
  /// Components of the projected vectors.
  virtual uint32_t dim() const = 0;
  /// `out` is f32 [dim()].
  virtual void projectChunk(const Chunk& chunk, float* out) const = 0;
  /// `vectors` is f32 [tokens x token dim].
  virtual void projectQuery(std::span<const float> vectors, float* out) const = 0;
};

/// Mean of a chunk's token vectors against the sum of the query's.
class MeanProjection final : public ChunkProjection {
 public:
  explicit MeanProjection(uint32_t dim) : dim_(dim) {}
  uint64_t id() const override { return 0x6d65616e00000001; }
  uint32_t dim() const override { return dim_; }
  void projectChunk(const Chunk& chunk, float* out) const override;
  void projectQuery(std::span<const float> vectors, float* out) const override;

 private:
  const uint32_t dim_;
};

}  // namespace maxsimd
