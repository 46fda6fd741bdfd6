// A query's float vectors in the form that kernels read: int8 with a scale per token, packed once.
#pragma once

#include "runtime/aligned.h"
#include "kernels/contract.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

/// Symmetric quantisation per token: value = round(x / scale), ties to even.
class Query {
 public:
  enum class Values {
    /// scale = max|x| / 127
    all,
    /// Small values (small_values.h), which the AVX2 kernel multiplies faster: some 37 steps on either side instead of
    /// 127 (real text, 128 dimensions). For approximate steps only: a similarity of vectors of length 1 is off by some
    /// 0.002, one standard deviation.
    small,
  };

  /// For rows of this shape. `vectors` is f32 [tokens x dim], `offsets` f32 [tokens]; all finite.
  Query(const Kernel& kernel, std::span<const float> vectors, std::span<const float> offsets, RowShape shape,
        Values values = Values::all);
  /// A query of int8 vectors with scale 1 and offset 0: a block of token vectors that is compared with centroids.
  Query(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, RowShape shape);

  const PackedQuery& packed() const { return packed_; }
  /// The quantised vectors before packing, int8 [tokens x dim].
  std::span<const int8_t> quantised() const { return quantised_; }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

 private:
  void pack(const Kernel& kernel, const int8_t* vectors, uint32_t tokens, RowShape shape);

  std::vector<int8_t> quantised_;
  AlignedVector<uint8_t> bytes_;
  AlignedVector<float> scales_;
  AlignedVector<float> offsets_;
  PackedQuery packed_{};
};

}  // namespace maxsimd
