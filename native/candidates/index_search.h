// What a search asks of an index.
#pragma once

#include "index/condition.h"
#include "runtime/deadline.h"
#include "store/segment.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace maxsimd {

/// `device` is found by `automatic` and not asked for.
enum class Plan : uint8_t { automatic, exact, codes, lists, device };

/// Documents by their metadata.
struct MetadataFilter {
  /// Present = all must match.
  std::optional<std::vector<Term>> terms;
  /// Present = it must be met, too.
  std::optional<Condition> where;
};

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
