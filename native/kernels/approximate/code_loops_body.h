// The bodies of the loops in code_loops.h, written once with the compiler's vector types. A source defines TARGET and
// REGISTER_BYTES, includes this file, and adds what such types lack: `anyReaches`, `sumOf` and `narrow`.
//
// Vectors that are compared or converted are no wider than a register, because g++ 12 splits wider ones into elements.
#pragma once

#include "kernels/approximate/code_loops.h"
#include "kernels/target.h"

#include <bit>
#include <cstring>

namespace maxsimd {
namespace {

/// Entries of this many query tokens.
template <uint32_t Lanes>
struct Vectors {
  typedef uint8_t Entries __attribute__((vector_size(Lanes)));
  typedef uint16_t Pairs __attribute__((vector_size(Lanes)));
};
template <uint32_t Lanes>
using Entries = typename Vectors<Lanes>::Entries;

/// Below, `Stride` is the length of a table's rows, so that the compiler can unroll loops over them, or 0 for any
/// multiple of `manyTokens`.
constexpr uint32_t registerTokens = REGISTER_BYTES > manyTokens ? REGISTER_BYTES : manyTokens;
constexpr uint32_t lanesOf(uint32_t stride) { return stride > 0 && stride <= registerTokens ? stride : manyTokens; }
constexpr uint32_t floatLanes = REGISTER_BYTES / sizeof(float);
typedef float Floats __attribute__((vector_size(REGISTER_BYTES), aligned(4)));
typedef int32_t Integers __attribute__((vector_size(REGISTER_BYTES)));
/// Entries that are quantised together.
constexpr uint32_t quantizedLanes = 16;
typedef uint8_t Quantized __attribute__((vector_size(quantizedLanes)));
constexpr uint32_t rowRegisters = quantizedLanes / floatLanes;

/// Whether row[i] >= bound[i] for any i.
TARGET_INLINE bool anyReaches(const Entries<fewTokens>& row, const Entries<fewTokens>& bound);
TARGET_INLINE bool anyReaches(const Entries<manyTokens>& row, const Entries<manyTokens>& bound);
TARGET_INLINE uint32_t sumOf(const Entries<fewTokens>& entries);
TARGET_INLINE uint32_t sumOf(const Entries<manyTokens>& entries);
#if REGISTER_BYTES > 32
TARGET_INLINE bool anyReaches(const Entries<registerTokens>& row, const Entries<registerTokens>& bound);
TARGET_INLINE uint32_t sumOf(const Entries<registerTokens>& entries);
#endif
/// Narrows integers of 0..255 to bytes.
TARGET_INLINE Quantized narrow(const Integers (&integers)[rowRegisters]);

/// entries[i] * factor >> 8. Even and odd lanes are multiplied apart, because products have 16 bits.
template <uint32_t Lanes>
TARGET_INLINE void scale(Entries<Lanes>& entries, uint16_t factor) {
  const auto pairs = typename Vectors<Lanes>::Pairs(entries);
  entries = Entries<Lanes>((pairs & 0xff) * factor >> 8 | ((pairs >> 8) * factor & 0xff00));
}

/// Adds the table entries of the codewords of 16 subspaces, 8 bytes. A codeword's offset in the table is its number
/// times the lanes: one rotation and one mask.
template <uint32_t Lanes>
TARGET_INLINE void addCodewords(uint64_t bytes, const uint8_t* table, Entries<Lanes>& even, Entries<Lanes>& odd) {
  constexpr uint64_t mask = 15 * Lanes;
  constexpr size_t subspaceBytes = size_t(codewords) * Lanes;
  constexpr int times = std::countr_zero(Lanes);
#pragma GCC unroll 8
  for (int b = 0; b < 8; ++b, table += 2 * subspaceBytes) {
    const int low = 8 * b - times, high = low + 4;
    even += *reinterpret_cast<const Entries<Lanes>*>(table + (std::rotr(bytes, low) & mask));
    odd += *reinterpret_cast<const Entries<Lanes>*>(table + subspaceBytes + (std::rotr(bytes, high) & mask));
  }
}

template <uint32_t Lanes>
TARGET_INLINE const Entries<Lanes>& rowOf(const uint8_t* entries, uint32_t code, size_t stride, uint32_t token) {
  return *reinterpret_cast<const Entries<Lanes>*>(entries + code * stride + token);
}

/// highest[i] of the tokens from `token` on.
template <uint32_t Lanes>
TARGET_INLINE void highestAt(const uint8_t* entries, uint32_t codeMask, const CodeSpan& codes, size_t tokensPadded,
                             uint32_t token, Entries<Lanes>& highest) {
  // Two maxima, because one would wait for its own last result.
  Entries<Lanes> even{}, odd{};
  uint32_t k = 0;
  for (; k + 2 <= codes.count; k += 2) {
    const auto& a = rowOf<Lanes>(entries, codes.at(k, codeMask), tokensPadded, token);
    const auto& b = rowOf<Lanes>(entries, codes.at(k + 1, codeMask), tokensPadded, token);
    even = a > even ? a : even;
    odd = b > odd ? b : odd;
  }
  if (k < codes.count) {
    const auto& a = rowOf<Lanes>(entries, codes.at(k, codeMask), tokensPadded, token);
    even = a > even ? a : even;
  }
  highest = even > odd ? even : odd;
}

template <uint32_t Stride>
TARGET_INLINE uint32_t rowsWorth(const ResidualTable& table, const CodedChunk& chunk, const uint8_t* highest,
                                 ChosenRow* chosen) {
  constexpr uint32_t lanes = lanesOf(Stride);
  const size_t stride = Stride > 0 ? Stride : table.tokensPadded;
  Entries<lanes> bounds[Stride > 0 ? Stride / lanes : queryTokensMax / lanes];
  for (uint32_t token = 0; token < stride; token += lanes) {
    Entries<lanes> most, margin;
    std::memcpy(&most, highest + token, sizeof most);
    std::memcpy(&margin, table.margins + token, sizeof margin);
    // Padding tokens have entries of 0.
    bounds[token / lanes] = most > margin ? most - margin : Entries<lanes>{} + 1;
  }
  const uint32_t rowBytes = table.subspaces / 2;
  uint32_t count = 0, place = 0;
  for (uint32_t k = 0; k < chunk.codes.count && place < chunk.rows; place += chunk.runs[k++]) {
    const uint32_t code = chunk.codes.at(k, table.codeMask);
    bool reaches = false;
    for (uint32_t token = 0; token < stride; token += lanes)
      reaches |= anyReaches(rowOf<lanes>(table.entries, code, stride, token), bounds[token / lanes]);
    if (!reaches) continue;
    const uint32_t left = chunk.rows - place, run = chunk.runs[k], rows = run < left ? run : left;
    // Prefetch one code at a time, because a processor has few prefetches under way. Rows begin anywhere in a line.
    const uint8_t* const residuals = chunk.residuals + size_t(place) * rowBytes;
    __builtin_prefetch(residuals);
    __builtin_prefetch(residuals + size_t(rows) * rowBytes - 1);
    for (uint32_t r = 0; r < rows; ++r) chosen[count++] = {code, place + r};
  }
  return count;
}

TARGET uint32_t chooseRows(const ResidualTable& table, const CodedChunk& chunk, const uint8_t* highest,
                           ChosenRow* chosen) {
  if (table.tokensPadded == fewTokens) return rowsWorth<fewTokens>(table, chunk, highest, chosen);
  if (table.tokensPadded == manyTokens) return rowsWorth<manyTokens>(table, chunk, highest, chosen);
  if (table.tokensPadded == registerTokens) return rowsWorth<registerTokens>(table, chunk, highest, chosen);
  return rowsWorth<0>(table, chunk, highest, chosen);
}

/// `Subspaces`: the number of the table, or 0 for any.
template <uint32_t Subspaces, uint32_t Stride>
TARGET_INLINE uint32_t residualMaxima(const ResidualTable& table, const uint8_t* bytes, const ChosenRow* rows,
                                      uint32_t count) {
  constexpr uint32_t lanes = lanesOf(Stride);
  constexpr size_t subspaceBytes = size_t(codewords) * lanes;
  const size_t stride = Stride > 0 ? Stride : table.tokensPadded;
  const uint32_t subspaces = Subspaces > 0 ? Subspaces : table.subspaces, rowBytes = subspaces / 2;
  uint32_t sum = 0;
  for (uint32_t token = 0; token < stride; token += lanes) {
    const uint8_t* const residuals = table.residuals + token * subspaces * codewords;
    Entries<lanes> most{};
    for (const ChosenRow* row = rows; row < rows + count; ++row) {
      const uint8_t* const own = bytes + size_t(row->place) * rowBytes;
      // Two sums, because one would wait for its own last result. The centroid comes last, because it is farther away
      // in memory.
      Entries<lanes> even{}, odd{};
      uint32_t b = 0;
      for (; b + 8 <= rowBytes; b += 8) {
        uint64_t together;
        std::memcpy(&together, own + b, sizeof together);
        addCodewords<lanes>(together, residuals + b * 2 * subspaceBytes, even, odd);
      }
      for (; b < rowBytes; ++b) {
        const uint8_t* subspace = residuals + b * 2 * subspaceBytes;
        even += *reinterpret_cast<const Entries<lanes>*>(subspace + size_t(own[b] & 15) * lanes);
        odd += *reinterpret_cast<const Entries<lanes>*>(subspace + subspaceBytes + size_t(own[b] >> 4) * lanes);
      }
      Entries<lanes> centroid = rowOf<lanes>(table.entries, row->code, stride, token);
      scale<lanes>(centroid, table.entryFactor);
      const Entries<lanes> similarity = even + odd + centroid;
      most = similarity > most ? similarity : most;
    }
    sum += sumOf(most);
  }
  return sum;
}

TARGET uint32_t sumOfResidualMaxima(const ResidualTable& table, const uint8_t* bytes, const ChosenRow* rows,
                                    uint32_t count) {
  // Most models have 128 dimensions, and most queries up to 64 tokens.
  if (table.subspaces == 32) {
    if (table.tokensPadded == fewTokens) return residualMaxima<32, fewTokens>(table, bytes, rows, count);
    if (table.tokensPadded == manyTokens) return residualMaxima<32, manyTokens>(table, bytes, rows, count);
    if (table.tokensPadded == 2 * manyTokens) return residualMaxima<32, 2 * manyTokens>(table, bytes, rows, count);
  }
  if (table.tokensPadded == fewTokens) return residualMaxima<0, fewTokens>(table, bytes, rows, count);
  if (table.tokensPadded == registerTokens) return residualMaxima<0, registerTokens>(table, bytes, rows, count);
  return residualMaxima<0, 0>(table, bytes, rows, count);
}

template <uint32_t Stride>
TARGET_INLINE uint32_t sumOfHighest(const ResidualTable& table, const CodeSpan& codes, uint8_t* highest) {
  constexpr uint32_t lanes = lanesOf(Stride);
  const uint32_t stride = Stride > 0 ? Stride : table.tokensPadded;
  uint32_t sum = 0;
  for (uint32_t token = 0; token < stride; token += lanes) {
    Entries<lanes> most;
    highestAt<lanes>(table.entries, table.codeMask, codes, stride, token, most);
    if (highest != nullptr) std::memcpy(highest + token, &most, sizeof most);
    sum += sumOf(most);
  }
  return sum;
}

TARGET uint32_t highestOfCodes(const ResidualTable& table, const CodeSpan& codes, uint8_t* highest) {
  if (table.tokensPadded == fewTokens) return sumOfHighest<fewTokens>(table, codes, highest);
  if (table.tokensPadded == registerTokens) return sumOfHighest<registerTokens>(table, codes, highest);
  return sumOfHighest<0>(table, codes, highest);
}

template <uint32_t Stride>
TARGET_INLINE void hitsOfRows(const uint8_t* entries, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                              std::vector<TableHit>& hits) {
  constexpr uint32_t lanes = lanesOf(Stride);
  for (uint32_t k = 0; k < rows; ++k, entries += tokensPadded) {
    for (uint32_t token = 0; token < tokensPadded; token += lanes) {
      Entries<lanes> bound;
      std::memcpy(&bound, least + token, sizeof bound);
      const auto& row = *reinterpret_cast<const Entries<lanes>*>(entries + token);
      // Most rows have no hit, and one comparison shows it. A padding token has the bound 0 here and no entry of 255.
      if (!anyReaches(row, bound > 0 ? bound : Entries<lanes>{} + 255)) continue;
      // All bits of a lane are set if its entry reaches the bound and its token is no padding.
      const auto enough = (row >= bound) & (bound > 0);
      uint64_t words[lanes / 8];
      std::memcpy(words, &enough, sizeof words);
      for (uint32_t w = 0; w < lanes / 8; ++w) {
        for (uint64_t word = words[w] & 0x0101010101010101u; word != 0; word &= word - 1) {
          const uint32_t i = token + w * 8 + uint32_t(std::countr_zero(word)) / 8;
          hits.push_back({k, uint16_t(i), entries[i]});
        }
      }
    }
  }
}

TARGET void collectHits(const uint8_t* entries, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                        std::vector<TableHit>& hits) {
  if (tokensPadded == fewTokens) hitsOfRows<fewTokens>(entries, rows, tokensPadded, least, hits);
  else if (tokensPadded == registerTokens) hitsOfRows<registerTokens>(entries, rows, tokensPadded, least, hits);
  else hitsOfRows<0>(entries, rows, tokensPadded, least, hits);
}

TARGET void quantizeEntries(const float* similarities, uint32_t rows, uint32_t stride, uint32_t tokens,
                            const float* floors, const float* factors, uint8_t* entries, uint32_t entriesStride) {
  for (uint32_t k = 0; k < rows; ++k, similarities += stride, entries += entriesStride) {
    for (uint32_t first = 0; first < tokens; first += quantizedLanes) {
      Integers integers[rowRegisters];
#pragma GCC unroll 4
      for (uint32_t r = 0; r < rowRegisters; ++r) {
        const uint32_t i = first + r * floatLanes;
        const auto floor = *reinterpret_cast<const Floats*>(floors + i),
                   factor = *reinterpret_cast<const Floats*>(factors + i);
        Floats entry = (*reinterpret_cast<const Floats*>(similarities + i) - floor) * factor + 0.5f;
        entry = entry > 0.0f ? entry : Floats{};
        entry = entry < 255.0f ? entry : Floats{} + 255.0f;
        integers[r] = __builtin_convertvector(entry, Integers);
      }
      const Quantized rounded = narrow(integers);
      std::memcpy(entries + first, &rounded, sizeof rounded);
    }
  }
}

constexpr CodeLoops codeLoops(const char* name) {
  return {name, registerTokens, quantizeEntries, highestOfCodes, chooseRows, sumOfResidualMaxima, collectHits};
}

}  // namespace
}  // namespace maxsimd
