#include "kernels/refined_levels.h"

#include <bit>
#include <cmath>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && \
    !defined(__SANITIZE_THREAD__)
#define MAXSIMD_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define MAXSIMD_CLONES
#endif

namespace maxsimd {
namespace {

constexpr uint32_t lanes = 32;
typedef uint8_t Levels __attribute__((vector_size(lanes), aligned(32)));
typedef uint16_t Products __attribute__((vector_size(lanes * sizeof(uint16_t))));
constexpr uint32_t quantized = 16;
typedef float Floats __attribute__((vector_size(quantized * sizeof(float)), aligned(4)));
typedef int32_t Integers __attribute__((vector_size(quantized * sizeof(int32_t))));
typedef uint8_t Quantized __attribute__((vector_size(quantized)));

/// `Subspaces` and `Stride` are those of the table, or 0: what the compiler knows it unrolls.
template <uint32_t Subspaces, uint32_t Stride>
__attribute__((always_inline)) inline uint32_t sumOfMaxima(const RefinedTable& table, const uint16_t* codes,
                                                           const uint8_t* runs, uint32_t codeCount,
                                                           const uint8_t* bytes, uint32_t rows) {
  const size_t stride = Stride > 0 ? Stride : table.tokensPadded;
  const uint32_t subspaces = Subspaces > 0 ? Subspaces : table.subspaces;
  const size_t subspaceBytes = codewords * stride;
  const uint16_t factor = table.levelFactor;
  uint32_t sum = 0;
  for (uint32_t token = 0; token < stride; token += lanes) {
    Levels most{};
    const uint8_t* next = bytes;
    uint32_t left = rows;
    for (uint32_t k = 0; k < codeCount; ++k) {
      const auto& levels =
          *reinterpret_cast<const Levels*>(table.levels + size_t(codes[k] & table.codeMask) * stride + token);
      const Levels centroid =
          __builtin_convertvector((__builtin_convertvector(levels, Products) * factor) >> 8, Levels);
      const uint32_t run = runs[k] < left ? runs[k] : left;
      left -= run;
      for (uint32_t j = 0; j < run; ++j, next += subspaces) {
        const uint8_t* subspace = table.residuals + token;
        Levels similarity = centroid;
        for (uint32_t m = 0; m < subspaces; ++m)
          similarity += *reinterpret_cast<const Levels*>(subspace + m * subspaceBytes + next[m] * stride);
        most = similarity > most ? similarity : most;
      }
    }
    for (uint32_t i = 0; i < lanes; ++i) sum += most[i];
  }
  return sum;
}

}  // namespace

MAXSIMD_CLONES
uint32_t sumOfRefinedMaxima(const RefinedTable& table, const uint16_t* codes, const uint8_t* runs, uint32_t codeCount,
                            const uint8_t* bytes, uint32_t rows) {
  // 128 dimensions and up to 32 or 64 query tokens are what most models have.
  if (table.subspaces == 8 && table.tokensPadded == 32)
    return sumOfMaxima<8, 32>(table, codes, runs, codeCount, bytes, rows);
  if (table.subspaces == 8 && table.tokensPadded == 64)
    return sumOfMaxima<8, 64>(table, codes, runs, codeCount, bytes, rows);
  return sumOfMaxima<0, 0>(table, codes, runs, codeCount, bytes, rows);
}

MAXSIMD_CLONES
void highestLevels(const uint8_t* levels, uint32_t rows, uint32_t tokensPadded, uint8_t* highest) {
  for (uint32_t token = 0; token < tokensPadded; token += lanes) {
    Levels most{};
    for (uint32_t k = 0; k < rows; ++k) {
      const auto& row = *reinterpret_cast<const Levels*>(levels + size_t(k) * tokensPadded + token);
      most = row > most ? row : most;
    }
    std::memcpy(highest + token, &most, sizeof most);
  }
}

MAXSIMD_CLONES
void collectLevels(const uint8_t* levels, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                   std::vector<LevelEntry>& entries) {
  for (uint32_t k = 0; k < rows; ++k, levels += tokensPadded) {
    for (uint32_t token = 0; token < tokensPadded; token += lanes) {
      Levels bound;
      std::memcpy(&bound, least + token, sizeof bound);
      const auto& row = *reinterpret_cast<const Levels*>(levels + token);
      // All bits of a lane set where a level is high enough, and padding tokens with their bound of 0 left out.
      const auto enough = (row >= bound) & (bound > 0);
      uint64_t words[lanes / 8];
      std::memcpy(words, &enough, sizeof words);
      for (uint32_t w = 0; w < lanes / 8; ++w) {
        for (uint64_t word = words[w] & 0x0101010101010101u; word != 0; word &= word - 1) {
          const uint32_t i = token + w * 8 + uint32_t(std::countr_zero(word)) / 8;
          entries.push_back({uint16_t(k), uint16_t(i), levels[i]});
        }
      }
    }
  }
}

MAXSIMD_CLONES
void codewordSimilarities(const float* words, const float* columns, uint32_t stride, float* dots, float* least,
                          float* most) {
  for (uint32_t i = 0; i < stride; i += quantized) {
    Floats low{}, high{};
    for (uint32_t w = 0; w < codewords; ++w) {
      Floats sum{};
      for (uint32_t d = 0; d < subspaceDim; ++d)
        sum += words[size_t(w) * subspaceDim + d] * *reinterpret_cast<const Floats*>(columns + size_t(d) * stride + i);
      std::memcpy(dots + size_t(w) * stride + i, &sum, sizeof sum);
      if (w == 0) low = high = sum;
      low = sum < low ? sum : low;
      high = sum > high ? sum : high;
    }
    std::memcpy(least + i, &low, sizeof low);
    std::memcpy(most + i, &high, sizeof high);
  }
}

MAXSIMD_CLONES
void quantizeLevels(const float* similarities, uint32_t rows, uint32_t stride, const float* floors,
                    const float* factors, uint8_t* levels, uint32_t tokensPadded) {
  for (uint32_t k = 0; k < rows; ++k, similarities += stride, levels += tokensPadded) {
    for (uint32_t i = 0; i < stride; i += quantized) {
      const auto floor = *reinterpret_cast<const Floats*>(floors + i),
                 factor = *reinterpret_cast<const Floats*>(factors + i);
      Floats level = (*reinterpret_cast<const Floats*>(similarities + i) - floor) * factor + 0.5f;
      level = level > 0.0f ? level : Floats{};
      level = level < 255.0f ? level : Floats{} + 255.0f;
      const Quantized rounded = __builtin_convertvector(__builtin_convertvector(level, Integers), Quantized);
      std::memcpy(levels + i, &rounded, sizeof rounded);
    }
  }
}

MAXSIMD_CLONES
uint8_t nearestCodeword(const float* vector, const float* columns, const float* halfSquares) {
  // Sums of so many codewords stay in registers over all components.
  constexpr uint32_t together = 4, step = together * quantized;
  Floats most = Floats{} - INFINITY;
  Integers where{};
  for (uint32_t first = 0; first < codewords; first += step) {
    Floats similarities[together];
    for (uint32_t t = 0; t < together; ++t)
      similarities[t] = -*reinterpret_cast<const Floats*>(halfSquares + first + t * quantized);
    for (uint32_t d = 0; d < subspaceDim; ++d) {
      const float* column = columns + d * codewords + first;
      for (uint32_t t = 0; t < together; ++t)
        similarities[t] += vector[d] * *reinterpret_cast<const Floats*>(column + t * quantized);
    }
    for (uint32_t t = 0; t < together; ++t) {
      const Integers better = similarities[t] > most;
      most = better ? similarities[t] : most;
      where = better ? Integers{} + int32_t(first + t * quantized) : where;
    }
  }
  uint32_t best = 0;
  for (uint32_t i = 1; i < quantized; ++i) best = most[i] > most[best] ? i : best;
  return uint8_t(uint32_t(where[best]) + best);
}

}  // namespace maxsimd
