// The order of chunks with equal scores: the older document version first, then the chunk that comes first in it.
// Version ids increase and stay with a version wherever merges put its record. So the order does not depend on how
// documents are spread over segments.
#pragma once

#include <compare>
#include <cstdint>

namespace maxsimd {

struct Age {
  uint64_t versionId;
  uint32_t chunkIndex;

  friend auto operator<=>(const Age&, const Age&) = default;
};

}  // namespace maxsimd
