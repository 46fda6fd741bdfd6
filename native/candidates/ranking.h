// The best by score; the older first where scores are equal.
#pragma once

#include "candidates/shortlist.h"
#include "index/age.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

struct Ranked {
  float score;
  Age age;
  /// Among the candidates.
  uint32_t position;
};

/// The `count` best of all, best first, or all of them if they are fewer; `scores` and `candidates` are [all]. Only ages that
/// may decide are asked for.
std::vector<Ranked> bestByScore(std::span<const float> scores, std::span<const Candidate> candidates, size_t count,
                                const AgesOf& agesOf);

}  // namespace maxsimd
