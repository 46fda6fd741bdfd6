#include "kernels/refined_levels.h"

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && !defined(__SANITIZE_THREAD__)
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
constexpr uint32_t wide = 64;
typedef float Wide __attribute__((vector_size(wide * sizeof(float)), aligned(4)));

}  // namespace

MAXSIMD_CLONES
uint32_t sumOfRefinedMaxima(const RefinedTable& table, const uint16_t* codes, const uint8_t* runs, uint32_t codeCount,
                            const uint8_t* bytes) {
  uint32_t sum = 0;
  const size_t stride = table.tokensPadded, subspaceBytes = codewords * stride;
  const uint32_t subspaces = table.subspaces;
  const uint16_t factor = table.levelFactor;
  for (uint32_t token = 0; token < table.tokensPadded; token += lanes) {
    Levels most{};
    const uint8_t* next = bytes;
    for (uint32_t k = 0; k < codeCount; ++k) {
      const auto& levels = *reinterpret_cast<const Levels*>(table.levels + codes[k] * stride + token);
      const Levels centroid = __builtin_convertvector((__builtin_convertvector(levels, Products) * factor) >> 8, Levels);
      for (uint32_t j = 0; j < runs[k]; ++j) {
        Levels similarity = centroid;
        const uint8_t* subspace = table.residuals + token;
        for (uint32_t m = 0; m < subspaces; ++m, subspace += subspaceBytes) {
          similarity += *reinterpret_cast<const Levels*>(subspace + *next++ * stride);
        }
        most = similarity > most ? similarity : most;
      }
    }
    for (uint32_t i = 0; i < lanes; ++i) sum += most[i];
  }
  return sum;
}

MAXSIMD_CLONES
void quantizeLevels(const float* similarities, uint32_t rows, uint32_t stride, const float* floors, const float* factors,
                    uint8_t* levels, uint32_t tokensPadded) {
  for (uint32_t k = 0; k < rows; ++k, similarities += stride, levels += tokensPadded) {
    for (uint32_t i = 0; i < stride; i += quantized) {
      const auto floor = *reinterpret_cast<const Floats*>(floors + i), factor = *reinterpret_cast<const Floats*>(factors + i);
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
  float similarities[codewords];
  for (uint32_t first = 0; first < codewords; first += wide) {
    Wide sum = -*reinterpret_cast<const Wide*>(halfSquares + first);
    for (uint32_t d = 0; d < subspaceDim; ++d) {
      sum += vector[d] * *reinterpret_cast<const Wide*>(columns + d * codewords + first);
    }
    std::memcpy(similarities + first, &sum, sizeof sum);
  }
  float most = similarities[0];
  for (uint32_t w = 1; w < codewords; ++w) most = similarities[w] > most ? similarities[w] : most;
  uint32_t nearest = 0;
  while (similarities[nearest] < most) ++nearest;
  return uint8_t(nearest);
}

}  // namespace maxsimd
