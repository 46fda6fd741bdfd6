// What decides between chunks of equal scores: the older document version is first, then the chunk that stands first
// in it. Version ids are handed out in increasing order and stay with a version wherever merges put its record, so the
// same content is ranked the same way however it is spread over segments.
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
