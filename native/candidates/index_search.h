// The parameters of a search of one index.
#pragma once

#include "index/selection.h"
#include "index/spans.h"
#include "runtime/deadline.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace maxsimd {

/// How candidates are found (search/search.h). A caller may ask for any but `device`, which `automatic` chooses.
enum class Plan : uint8_t { automatic, exact, codes, lists, graph, device };

struct IndexSearch : MetadataFilter {
  std::vector<float> query;    // f32 [tokens x dim]
  std::vector<float> offsets;  // f32 [tokens]
  uint32_t topK;
  /// So many of the best are left out before the `topK` of the answer.
  uint32_t skip = 0;
  /// True = `topK` and `skip` count documents and not chunks.
  bool grouped;
  uint32_t candidateK;
  /// Shortlists are longer by this factor.
  double breadth = 1;
  uint64_t generation;
  bool components;
  Plan plan;
  /// Documents that have one of these spans are found whatever their codes say, and rank higher.
  std::optional<SpanMatch> match;
  Deadline deadline;

  /// How many of the best are to be found.
  uint32_t wanted() const { return skip + topK; }
};

}  // namespace maxsimd
