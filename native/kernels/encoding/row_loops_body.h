// The bodies of the loops in row_loops.h, written once with the compiler's vector types. A source defines TARGET and
// REGISTER_BYTES (32 with AVX2, else 16) and includes this file.
#pragma once

#include "kernels/encoding/refined.h"
#include "kernels/encoding/row_loops.h"
#include "kernels/target.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace maxsimd {
namespace {

typedef float Floats __attribute__((vector_size(REGISTER_BYTES)));
typedef int32_t Words __attribute__((vector_size(REGISTER_BYTES)));
constexpr size_t lanes = REGISTER_BYTES / sizeof(float);

TARGET_INLINE Floats load(const float* from) {
  Floats values;
  std::memcpy(&values, from, sizeof values);
  return values;
}
TARGET_INLINE void store(float* to, const Floats& values) { std::memcpy(to, &values, sizeof values); }
TARGET_INLINE Floats magnitude(const Floats& values) { return Floats(Words(values) & 0x7fffffff); }
/// `size` > 0 with the signs of `values`.
TARGET_INLINE Floats withSigns(float size, const Floats& values) {
  return Floats((Words(values) & int32_t(0x80000000)) | Words(Floats{} + size));
}
TARGET_INLINE bool isAny(const Words& found) {
  uint64_t parts[REGISTER_BYTES / sizeof(uint64_t)], all = 0;
  std::memcpy(parts, &found, sizeof parts);
  for (const uint64_t part : parts) all |= part;
  return all != 0;
}
TARGET_INLINE float least(const Floats& values) {
  float least = values[0];
  for (size_t i = 1; i < lanes; ++i) least = std::min(least, values[i]);
  return least;
}

/// The products of one row with four others, which share its reads.
TARGET_INLINE void fourProducts(const int16_t* __restrict row, const int16_t* const (&others)[4], size_t width,
                                int32_t (&sums)[4]) {
  const int16_t* const __restrict v0 = others[0], * const __restrict v1 = others[1], * const __restrict v2 = others[2], * const __restrict v3 = others[3];
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (size_t d = 0; d < width; ++d) {
    s0 += int32_t(row[d]) * v0[d];
    s1 += int32_t(row[d]) * v1[d];
    s2 += int32_t(row[d]) * v2[d];
    s3 += int32_t(row[d]) * v3[d];
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

TARGET void products(const int16_t* values, size_t rows, size_t width, int32_t* products) {
  // Rows that the first-level cache holds while all others pass by.
  constexpr size_t tile = 32;
  for (size_t first = 0; first < rows; first += tile) {
    for (size_t a = first; a < rows; ++a) {
      for (size_t b = first; b <= std::min(a, first + tile - 1); b += 4) {
        // The last row is repeated where fewer than four are left.
        const size_t at[] = {b, std::min(b + 1, a), std::min(b + 2, a), std::min(b + 3, a)};
        const int16_t* const others[] = {values + at[0] * width, values + at[1] * width, values + at[2] * width,
                                         values + at[3] * width};
        int32_t sums[4];
        fourProducts(values + a * width, others, width, sums);
        for (size_t i = 0; i < 4; ++i) products[a * rows + at[i]] = products[at[i] * rows + a] = sums[i];
      }
    }
  }
}

TARGET size_t nearest(const float* values, const float* penalties, size_t count) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Floats lowest = Floats{} + infinity;
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Floats value = load(values + i) + load(penalties + i);
    lowest = value < lowest ? value : lowest;
  }
  float bound = least(lowest);
  for (; i < count; ++i) bound = std::min(bound, values[i] + penalties[i]);
  if (!(bound < infinity)) return count;
  i = 0;
  while (i + lanes <= count && !isAny(load(values + i) + load(penalties + i) == bound)) i += lanes;
  while (values[i] + penalties[i] != bound) ++i;
  return i;
}

TARGET void join(float* __restrict own, const float* __restrict other, const float* __restrict sizes, size_t count,
                 float size, float otherSize, float distance) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = (size + sizes[i]) * own[i] + (otherSize + sizes[i]) * other[i] - sizes[i] * distance;
    const float joined = sum / (size + otherSize + sizes[i]);
    // Without rounding no cluster comes nearer than the nearer of the two was.
    const float nearer = own[i] < other[i] ? own[i] : other[i];
    own[i] = joined > nearer ? joined : nearer;
  }
}

TARGET void gradients(const float* moment, size_t dim, size_t width, const float* errors, float* gradients) {
  constexpr size_t registers = 2, block = registers * lanes;
  for (size_t i = 0; i < width; i += block) {
    Floats sums[gradientRows][registers] = {};
    for (size_t j = 0; j < dim; ++j) {
      const float* const at = moment + j * width + i;
      const Floats first = load(at), second = load(at + lanes);
#pragma GCC unroll 4
      for (size_t r = 0; r < gradientRows; ++r) {
        const float error = errors[r * width + j];
        sums[r][0] += first * error;
        sums[r][1] += second * error;
      }
    }
    for (size_t r = 0; r < gradientRows; ++r) {
      store(gradients + r * width + i, sums[r][0]);
      store(gradients + r * width + i + lanes, sums[r][1]);
    }
  }
}

TARGET void refine(const float* moment, size_t width, float most, const RefinedRow& row) {
  float product = 0;  // of the row's own vector and the error: the scale made it 0
  for (uint32_t move = 0; move < movesMost; ++move) {
    const float factor = ownWeight * product;
    const auto towardsAt = [&](size_t i)
                               TARGET_LAMBDA { return load(row.gradient + i) + factor * load(row.vector + i); };
    const auto gainAt = [&](size_t i) TARGET_LAMBDA {
      const Floats towards = towardsAt(i);
      const Floats gain = magnitude(towards) - load(row.cost + i);
      const Floats moved = load(row.components + i) + withSigns(2, towards);
      return magnitude(moved) > most ? Floats{} : gain;
    };
    Floats highest{};
    for (size_t i = 0; i < width; i += lanes) {
      const Floats gain = gainAt(i);
      highest = gain > highest ? gain : highest;
    }
    const float bound = -least(-highest);
    if (!(bound > 0)) return;
    size_t chosen = 0;
    while (!isAny(gainAt(chosen) == bound)) chosen += lanes;
    const Words equal = gainAt(chosen) == bound;
    for (size_t lane = 0; equal[lane] == 0; ++lane) ++chosen;
    const float step = row.gradient[chosen] + factor * row.vector[chosen] < 0 ? -2.0f : 2.0f;
    row.components[chosen] += step;
    const float change = row.scale * step;
    const float* const along = moment + chosen * width;
    for (size_t i = 0; i < width; i += lanes)
      store(row.gradient + i, load(row.gradient + i) - change * load(along + i));
    product -= change * row.vector[chosen];
  }
}

constexpr RowLoops loopsOf(const char* name) { return {name, products, nearest, join, gradients, refine}; }

}  // namespace
}  // namespace maxsimd
