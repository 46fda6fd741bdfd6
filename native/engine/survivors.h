// Chunks that have come through a first, coarse look: what they are kept by, among all segments of a search.
#pragma once

#include "engine/codes.h"
#include "engine/live_chunks.h"
#include "engine/query_tables.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace maxsimd {

struct Candidate {
  /// Position among the selections.
  uint32_t segment;
  uint32_t chunk;
};

/// A segment with codes as one search sees it.
struct CodedSegment {
  /// Position among the selections.
  uint32_t segment;
  /// The live matching ones; at least one.
  const LiveChunks* selected;
  const ChunkCodes* codes;
  const CodebookTable* table;
};

/// Ascending = best first: the sum's complement, then the segment, then the chunk.
using Survivor = uint64_t;
inline constexpr uint32_t survivorSumBits = 18;
inline constexpr uint32_t survivorSegmentBits = 14;

inline Survivor survivorOf(uint32_t sum, uint32_t segment, uint32_t chunk) {
  constexpr uint64_t sumMask = (uint64_t(1) << survivorSumBits) - 1;
  return (~uint64_t(sum) & sumMask) << (32 + survivorSegmentBits) | uint64_t(segment) << 32 | chunk;
}

inline Candidate candidateOf(Survivor survivor) {
  return {uint32_t(survivor >> 32) & ((1u << survivorSegmentBits) - 1), uint32_t(survivor)};
}

inline void keepBest(std::vector<Survivor>& survivors, size_t count) {
  if (survivors.size() <= count) return;
  std::nth_element(survivors.begin(), survivors.begin() + long(count), survivors.end());
  survivors.resize(count);
}

/// The best `count` of all parts, by segment and chunk.
inline std::vector<Candidate> mergeSurvivors(const std::vector<std::vector<Survivor>>& parts, size_t count) {
  std::vector<Survivor> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  keepBest(all, count);
  std::vector<Candidate> candidates;
  candidates.reserve(all.size());
  for (const Survivor survivor : all) candidates.push_back(candidateOf(survivor));
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.segment != b.segment ? a.segment < b.segment : a.chunk < b.chunk;
  });
  return candidates;
}

}  // namespace maxsimd
