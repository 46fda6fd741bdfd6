// The bodies of code_loops.h, written once with vectors of the compiler: a source defines TARGET and REGISTER_BYTES, includes
// them, and adds what such vectors lack: `anyReaches`, `sumOf` and `narrow`.
//
// Vectors that are compared or converted are no wider than a register: g++ 12 takes wider ones apart, element by element.
#pragma once

#include "kernels/approximate/code_loops.h"
#include "kernels/target.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace maxsimd {
namespace {

constexpr uint32_t lanes = tableTokens;
typedef uint8_t Entries __attribute__((vector_size(lanes), aligned(32)));
typedef uint16_t Pairs __attribute__((vector_size(lanes)));
constexpr uint32_t floatLanes = REGISTER_BYTES / sizeof(float);
typedef float Floats __attribute__((vector_size(REGISTER_BYTES), aligned(4)));
typedef int32_t Integers __attribute__((vector_size(REGISTER_BYTES)));
typedef uint8_t Quantized __attribute__((vector_size(rowLanes)));
constexpr uint32_t rowRegisters = rowLanes / floatLanes;

/// Whether row[i] >= bound[i] for any i.
TARGET_INLINE bool anyReaches(const Entries& row, const Entries& bound);
TARGET_INLINE uint32_t sumOf(const Entries& entries);
/// Integers of 0..255 as bytes.
TARGET_INLINE Quantized narrow(const Integers (&integers)[rowRegisters]);

/// entries[i] * factor >> 8. Products have 16 bits: those of even and of odd lanes.
TARGET_INLINE void scale(Entries& entries, uint16_t factor) {
  const Pairs pairs = Pairs(entries);
  entries = Entries((pairs & 0xff) * factor >> 8 | ((pairs >> 8) * factor & 0xff00));
}

constexpr size_t subspaceBytes = size_t(codewords) * tableTokens;

/// Adds what the codewords of 16 subspaces, 8 bytes, contribute. A codeword's place in the table is its number times
/// `tableTokens`: one shift and one mask.
TARGET_INLINE void addCodewords(uint64_t bytes, const uint8_t* table, Entries& even, Entries& odd) {
  constexpr uint64_t mask = 15 * tableTokens;
  constexpr int times = std::countr_zero(tableTokens);
#pragma GCC unroll 8
  for (int b = 0; b < 8; ++b, table += 2 * subspaceBytes) {
    const int low = 8 * b - times, high = low + 4;
    even += *reinterpret_cast<const Entries*>(table + ((low < 0 ? bytes << -low : bytes >> low) & mask));
    odd +=
        *reinterpret_cast<const Entries*>(table + subspaceBytes + ((high < 0 ? bytes << -high : bytes >> high) & mask));
  }
}

TARGET_INLINE const Entries& rowOf(const uint8_t* entries, uint32_t code, size_t stride, uint32_t token) {
  return *reinterpret_cast<const Entries*>(entries + code * stride + token);
}

/// highest[i] of the tokens from `token` on.
TARGET_INLINE void highestAt(const uint8_t* entries, uint32_t codeMask, const CodeSpan& codes, size_t tokensPadded,
                             uint32_t token, Entries& highest) {
  // Two, for one would wait for itself.
  Entries even{}, odd{};
  uint32_t k = 0;
  for (; k + 2 <= codes.count; k += 2) {
    const Entries& a = rowOf(entries, codes.at(k, codeMask), tokensPadded, token);
    const Entries& b = rowOf(entries, codes.at(k + 1, codeMask), tokensPadded, token);
    even = a > even ? a : even;
    odd = b > odd ? b : odd;
  }
  if (k < codes.count) {
    const Entries& a = rowOf(entries, codes.at(k, codeMask), tokensPadded, token);
    even = a > even ? a : even;
  }
  highest = even > odd ? even : odd;
}

/// `Stride` is that of the table, or 0: what the compiler knows it unrolls.
template <uint32_t Stride>
TARGET_INLINE uint32_t rowsWorth(const ResidualTable& table, const CodedChunk& chunk, const uint8_t* highest,
                                 ChosenRow* chosen) {
  const size_t stride = Stride > 0 ? Stride : table.tokensPadded;
  Entries bounds[queryTokensMax / lanes];
  for (uint32_t token = 0; token < stride; token += lanes) {
    Entries most, margin;
    std::memcpy(&most, highest + token, sizeof most);
    std::memcpy(&margin, table.margins + token, sizeof margin);
    // Padding tokens have entries of 0.
    bounds[token / lanes] = most > margin ? most - margin : Entries{} + 1;
  }
  uint32_t count = 0, first = 0;
  for (uint32_t k = 0; k < chunk.codes.count; ++k) {
    const uint32_t code = chunk.codes.at(k, table.codeMask), left = chunk.rows - first;
    const uint32_t rows = chunk.runs[k] < left ? chunk.runs[k] : left;
    // Without a branch: neither what is chosen nor how many a code has can be predicted. Few codes have more.
    const ChosenRow row = chosenRow(code, first);
    for (uint32_t r = 0; r < rowsTogether; ++r) chosen[count + r] = row + r;
    uint32_t reaches = 0;
    for (uint32_t token = 0; token < stride; token += lanes)
      reaches |= anyReaches(rowOf(table.entries, code, stride, token), bounds[token / lanes]);
    const uint32_t taken = rows & -reaches;
    for (uint32_t r = rowsTogether; r < taken; ++r) chosen[count + r] = row + r;
    count += taken;
    first += rows;
  }
  return count;
}

TARGET uint32_t chooseRows(const ResidualTable& table, const CodedChunk& chunk, const uint8_t* highest,
                           ChosenRow* chosen) {
  return table.tokensPadded == lanes ? rowsWorth<lanes>(table, chunk, highest, chosen)
                                     : rowsWorth<0>(table, chunk, highest, chosen);
}

/// `Subspaces` and `Stride` are those of the table, or 0: what the compiler knows it unrolls.
template <uint32_t Subspaces, uint32_t Stride>
TARGET_INLINE uint32_t residualMaxima(const ResidualTable& table, const uint8_t* bytes, const ChosenRow* rows,
                                      uint32_t count) {
  const size_t stride = Stride > 0 ? Stride : table.tokensPadded;
  const uint32_t subspaces = Subspaces > 0 ? Subspaces : table.subspaces, rowBytes = subspaces / 2;
  uint32_t sum = 0;
  for (uint32_t token = 0; token < stride; token += lanes) {
    const uint8_t* const residuals = table.residuals + token * subspaces * codewords;
    Entries most{};
    for (const ChosenRow* row = rows; row < rows + count; ++row) {
      const uint8_t* const own = bytes + size_t(placeOf(*row)) * rowBytes;
      // Two sums, for one would wait for itself; the centroid last, for it comes from farther away.
      Entries even{}, odd{};
      uint32_t b = 0;
      for (; b + 8 <= rowBytes; b += 8) {
        uint64_t together;
        std::memcpy(&together, own + b, sizeof together);
        addCodewords(together, residuals + b * 2 * subspaceBytes, even, odd);
      }
      for (; b < rowBytes; ++b) {
        const uint8_t* subspace = residuals + b * 2 * subspaceBytes;
        even += *reinterpret_cast<const Entries*>(subspace + size_t(own[b] & 15) * tableTokens);
        odd += *reinterpret_cast<const Entries*>(subspace + subspaceBytes + size_t(own[b] >> 4) * tableTokens);
      }
      Entries centroid = rowOf(table.entries, codeOf(*row), stride, token);
      scale(centroid, table.entryFactor);
      const Entries similarity = even + odd + centroid;
      most = similarity > most ? similarity : most;
    }
    sum += sumOf(most);
  }
  return sum;
}

TARGET uint32_t sumOfResidualMaxima(const ResidualTable& table, const uint8_t* bytes, const ChosenRow* rows,
                                    uint32_t count) {
  // 128 dimensions and up to 32 or 64 query tokens are what most models have.
  if (table.subspaces == 32 && table.tokensPadded == 32) return residualMaxima<32, 32>(table, bytes, rows, count);
  if (table.subspaces == 32 && table.tokensPadded == 64) return residualMaxima<32, 64>(table, bytes, rows, count);
  return residualMaxima<0, 0>(table, bytes, rows, count);
}

TARGET uint32_t sumOfMaxima(const uint8_t* entries, uint32_t tokensPadded, uint32_t codeMask, const CodeSpan& codes) {
  uint32_t sum = 0;
  for (uint32_t token = 0; token < tokensPadded; token += lanes) {
    Entries highest;
    highestAt(entries, codeMask, codes, tokensPadded, token, highest);
    sum += sumOf(highest);
  }
  return sum;
}

TARGET uint32_t highestOfCodes(const uint8_t* entries, uint32_t codeMask, const CodeSpan& codes, uint32_t tokensPadded,
                               uint8_t* highest) {
  uint32_t sum = 0;
  for (uint32_t token = 0; token < tokensPadded; token += lanes) {
    Entries most;
    highestAt(entries, codeMask, codes, tokensPadded, token, most);
    std::memcpy(highest + token, &most, sizeof most);
    sum += sumOf(most);
  }
  return sum;
}

TARGET void highestEntries(const uint8_t* entries, uint32_t rows, uint32_t tokensPadded, uint8_t* highest) {
  for (uint32_t token = 0; token < tokensPadded; token += lanes) {
    Entries most{};
    for (uint32_t k = 0; k < rows; ++k) {
      const Entries& row = rowOf(entries, k, tokensPadded, token);
      most = row > most ? row : most;
    }
    std::memcpy(highest + token, &most, sizeof most);
  }
}

TARGET void collectHits(const uint8_t* entries, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                        std::vector<TableHit>& hits) {
  for (uint32_t k = 0; k < rows; ++k, entries += tokensPadded) {
    for (uint32_t token = 0; token < tokensPadded; token += lanes) {
      Entries bound;
      std::memcpy(&bound, least + token, sizeof bound);
      const auto& row = *reinterpret_cast<const Entries*>(entries + token);
      // All bits of a lane set where an entry is high enough, and padding tokens with their bound of 0 left out.
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

TARGET void codewordSimilarities(const float* words, uint32_t width, const float* columns, uint32_t stride,
                                 float* dots, float* least, float* most) {
  for (uint32_t i = 0; i < stride; i += floatLanes) {
    Floats low{}, high{};
    for (uint32_t w = 0; w < codewords; ++w) {
      Floats sum{};
      for (uint32_t d = 0; d < width; ++d)
        sum += words[size_t(w) * width + d] * *reinterpret_cast<const Floats*>(columns + size_t(d) * stride + i);
      std::memcpy(dots + size_t(w) * stride + i, &sum, sizeof sum);
      if (w == 0) low = high = sum;
      low = sum < low ? sum : low;
      high = sum > high ? sum : high;
    }
    std::memcpy(least + i, &low, sizeof low);
    std::memcpy(most + i, &high, sizeof high);
  }
}

TARGET void quantizeEntries(const float* similarities, uint32_t rows, uint32_t stride, uint32_t tokens,
                            const float* floors, const float* factors, uint8_t* entries, uint32_t entriesStride) {
  for (uint32_t k = 0; k < rows; ++k, similarities += stride, entries += entriesStride) {
    for (uint32_t first = 0; first < tokens; first += rowLanes) {
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

TARGET void nearestCodewords(const float* columns, const float* words, uint32_t width, const float* halfSquares,
                             uint8_t* nearest) {
  Integers where[rowRegisters] = {};
#pragma GCC unroll 4
  for (uint32_t r = 0; r < rowRegisters; ++r) {
    Floats most = Floats{} - INFINITY;
    const float* word = words;
    for (uint32_t w = 0; w < codewords; ++w, word += width) {
      Floats similarity = Floats{} - halfSquares[w];
      for (uint32_t d = 0; d < width; ++d)
        similarity += word[d] * *reinterpret_cast<const Floats*>(columns + size_t(d) * rowLanes + r * floatLanes);
      const Integers better = similarity > most;
      most = better ? similarity : most;
      where[r] = better ? Integers{} + int32_t(w) : where[r];
    }
  }
  const Quantized found = narrow(where);
  std::memcpy(nearest, &found, sizeof found);
}

constexpr CodeLoops codeLoops(const char* name) {
  return {name,           quantizeEntries, sumOfMaxima, chooseRows,           sumOfResidualMaxima,
          highestEntries, highestOfCodes,  collectHits, codewordSimilarities, nearestCodewords};
}

}  // namespace
}  // namespace maxsimd
