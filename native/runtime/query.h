// A query's float vectors as the kernels read them: int8 with a scale per token, packed once.
#pragma once

#include "runtime/aligned.h"
#include "kernels/contract.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

/// Symmetric quantisation per token: value = round(x / scale), halves to even.
class Query {
 public:
  enum class Values {
    /// scale = max|x| / 127
    all,
    /// What the AVX2 kernel multiplies faster (small_values.h): some 37 steps on either side instead of 127 (real text, 128
    /// dimensions). For what is approximate anyway: a similarity of vectors of length 1 is off by some .002, one standard deviation.
    small,
  };

  /// `vectors` is f32 [tokens x dim], `offsets` f32 [tokens]; all finite.
  Query(const Kernel& kernel, std::span<const float> vectors, std::span<const float> offsets, uint32_t dim,
        Values values = Values::all);
  /// int8 vectors with scale 1 and offset 0: a block of token vectors compared with centroids.
  Query(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, uint32_t dim);

  const PackedQuery& packed() const { return packed_; }
  /// int8 [tokens x dim], as they were before they were packed.
  std::span<const int8_t> quantised() const { return quantised_; }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

 private:
  void pack(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, uint32_t dim);

  std::vector<int8_t> quantised_;
  AlignedVector<uint8_t> bytes_;
  AlignedVector<float> scales_;
  AlignedVector<float> offsets_;
  PackedQuery packed_{};
};

}  // namespace maxsimd
