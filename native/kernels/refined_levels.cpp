#include "kernels/refined_levels.h"

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
constexpr uint32_t wide = 64;
typedef float Wide __attribute__((vector_size(wide * sizeof(float)), aligned(4)));
typedef int32_t WideIndexes __attribute__((vector_size(wide * sizeof(int32_t))));

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
      const Levels centroid =
          __builtin_convertvector((__builtin_convertvector(levels, Products) * factor) >> 8, Levels);
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
  Wide most{};
  WideIndexes where{};
  for (int32_t first = 0; first < int32_t(codewords); first += wide) {
    Wide similarity = -*reinterpret_cast<const Wide*>(halfSquares + first);
    for (uint32_t d = 0; d < subspaceDim; ++d) {
      similarity += vector[d] * *reinterpret_cast<const Wide*>(columns + d * codewords + first);
    }
    if (first == 0) {
      most = similarity;
      continue;
    }
    const WideIndexes better = similarity > most;
    most = better ? similarity : most;
    where = better ? WideIndexes{} + first : where;
  }
  float similarities[wide];
  int32_t firsts[wide];
  std::memcpy(similarities, &most, sizeof most);
  std::memcpy(firsts, &where, sizeof where);
  // Halves against each other: 64 lanes, 32, 16, ...; an index travels with its similarity.
  for (uint32_t i = 0; i < wide; ++i) firsts[i] += int32_t(i);
  for (uint32_t half = wide / 2; half > 0; half /= 2) {
    for (uint32_t i = 0; i < half; ++i) {
      const bool better = similarities[i + half] > similarities[i];
      similarities[i] = better ? similarities[i + half] : similarities[i];
      firsts[i] = better ? firsts[i + half] : firsts[i];
    }
  }
  return uint8_t(firsts[0]);
}

}  // namespace maxsimd
