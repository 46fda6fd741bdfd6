// What a search asks of an index.
#pragma once

#include "runtime/deadline.h"
#include "store/segment.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace maxsimd {

enum class Plan : uint8_t { automatic, exact, codes, lists };

struct IndexSearch {
  std::vector<float> query;    // f32 [tokens x dim]
  std::vector<float> offsets;  // f32 [tokens]
  uint32_t topK;
  uint32_t candidateK;
  uint64_t generation;
  /// Present = filter; all must match.
  std::optional<std::vector<Term>> terms;
  bool components;
  Plan plan;
  Deadline deadline;
};

}  // namespace maxsimd
