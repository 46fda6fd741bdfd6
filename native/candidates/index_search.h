// What a search asks of an index.
#pragma once

#include "index/selection.h"
#include "runtime/deadline.h"

#include <cstdint>
#include <vector>

namespace maxsimd {

/// `device` is found by `automatic` and not asked for.
enum class Plan : uint8_t { automatic, exact, codes, lists, graph, device };

struct IndexSearch : MetadataFilter {
  std::vector<float> query;    // f32 [tokens x dim]
  std::vector<float> offsets;  // f32 [tokens]
  uint32_t topK;
  /// `topK` counts documents.
  bool grouped;
  uint32_t candidateK;
  /// A factor on the length of shortlists.
  double breadth = 1;
  uint64_t generation;
  bool components;
  Plan plan;
  Deadline deadline;
};

}  // namespace maxsimd
