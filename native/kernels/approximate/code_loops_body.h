// The bodies of the loops in code_loops.h, written once with the compiler's vector types. A source defines TARGET and
// REGISTER_BYTES (32 with AVX2, else 16) and includes this file. Vectors of floats are no wider than a register: g++ 12
// splits wider ones into elements.
#pragma once

#include "kernels/approximate/code_loops.h"
#include "kernels/target.h"

#include <bit>
#include <cstring>

namespace maxsimd {
namespace {

/// Entries of so many query tokens.
typedef uint8_t Entries __attribute__((vector_size(tableLanes), may_alias));
typedef uint16_t Pairs __attribute__((vector_size(tableLanes)));

TARGET_INLINE const Entries& entriesAt(const uint8_t* from) { return *reinterpret_cast<const Entries*>(from); }

TARGET_INLINE const Entries& entriesOf(const ResidualTable& table, uint32_t code, uint32_t token) {
  return entriesAt(table.entries + size_t(code & table.codeMask) * table.tokensPadded + token);
}

/// Whether row[i] >= bound[i] for any i.
TARGET_INLINE bool anyReaches(const Entries& row, const Entries& bound) {
#if REGISTER_BYTES == 32
  return _mm256_movemask_epi8(__m256i(row >= bound)) != 0;
#else
  const auto reached = row >= bound;
  uint64_t words[tableLanes / 8];
  std::memcpy(words, &reached, sizeof words);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
#endif
}

TARGET_INLINE uint32_t sumOf(const Entries& entries) {
#if REGISTER_BYTES == 32
  const __m256i sums = _mm256_sad_epu8(__m256i(entries), _mm256_setzero_si256());
  return uint32_t(sums[0] + sums[1] + sums[2] + sums[3]);
#else
  constexpr uint64_t evenBytes = 0x00ff00ff00ff00ff, ones = 0x0001000100010001;
  uint64_t words[tableLanes / 8], pairs = 0;
  std::memcpy(words, &entries, sizeof words);
  for (const uint64_t word : words) pairs += (word & evenBytes) + (word >> 8 & evenBytes);
  // One multiplication adds four sums of 16 bits.
  return uint32_t(pairs * ones >> 48);
#endif
}

TARGET_INLINE void highestAt(const ResidualTable& table, std::span<const uint32_t> codes, uint32_t token,
                             Entries& highest) {
  // Two maxima, because one would wait for its own last result.
  Entries even{}, odd{};
  size_t k = 0;
  for (; k + 2 <= codes.size(); k += 2) {
    const Entries &a = entriesOf(table, codes[k], token), &b = entriesOf(table, codes[k + 1], token);
    even = a > even ? a : even;
    odd = b > odd ? b : odd;
  }
  if (k < codes.size()) {
    const Entries& a = entriesOf(table, codes[k], token);
    even = a > even ? a : even;
  }
  highest = even > odd ? even : odd;
}

TARGET uint32_t sumOfMaxima(const ResidualTable& table, std::span<const uint32_t> codes) {
  uint32_t sum = 0;
  for (uint32_t token = 0; token < table.tokensPadded; token += tableLanes) {
    Entries highest;
    highestAt(table, codes, token, highest);
    sum += sumOf(highest);
  }
  return sum;
}

/// Adds the entries of the codewords of 16 subspaces, 8 bytes. A codeword's offset in the table is its number times the
/// lanes: one rotation and one mask.
TARGET_INLINE void addCodewords(const uint8_t* from, const uint8_t* residuals, Entries& even, Entries& odd) {
  constexpr size_t subspaceBytes = size_t(codewords) * tableLanes;
  uint64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
#pragma GCC unroll 8
  for (int b = 0; b < 8; ++b, residuals += 2 * subspaceBytes) {
    even += entriesAt(residuals + (std::rotr(bytes, 8 * b - 5) & 15 * tableLanes));
    odd += entriesAt(residuals + subspaceBytes + (std::rotr(bytes, 8 * b - 1) & 15 * tableLanes));
  }
}

TARGET uint32_t sumOfResidualMaxima(const ResidualTable& table, const CodedChunk& chunk) {
  uint32_t sum = 0;
  for (uint32_t token = 0; token < table.tokensPadded; token += tableLanes) {
    const uint8_t* const residuals = table.residuals + size_t(token) * subspaces * codewords;
    const Entries& margin = entriesAt(table.margins + token);
    Entries bound, most{};
    highestAt(table, chunk.codes, token, bound);
    // Padding tokens have entries of 0.
    bound = bound > margin ? bound - margin : Entries{} + 1;
    uint32_t row = 0;
    for (const uint32_t code : chunk.codes) {
      const uint32_t run = code >> centroidBits, left = chunk.rows - row, end = row + (run < left ? run : left);
      const Entries& entries = entriesOf(table, code, token);
      if (!anyReaches(entries, bound)) {
        row = end;
        continue;
      }
      // Even and odd lanes are multiplied apart, because products have 16 bits.
      const auto pairs = Pairs(entries);
      const auto scaled =
          Entries((pairs & 0xff) * table.entryFactor >> 8 | ((pairs >> 8) * table.entryFactor & 0xff00));
      for (; row < end; ++row) {
        const uint8_t* const own = chunk.residuals + size_t(row) * residualBytes;
        Entries even = scaled, odd{};
        for (uint32_t b = 0; b < residualBytes; b += 8)
          addCodewords(own + b, residuals + size_t(b) * 2 * codewords * tableLanes, even, odd);
        even += odd;
        most = even > most ? even : most;
      }
    }
    sum += sumOf(most);
  }
  return sum;
}

TARGET void collectHits(const uint8_t* entries, uint32_t rows, uint32_t tokensPadded, const uint8_t* least,
                        std::vector<TableHit>& hits) {
  for (uint32_t k = 0; k < rows; ++k, entries += tokensPadded) {
    for (uint32_t token = 0; token < tokensPadded; token += tableLanes) {
      const Entries &bound = entriesAt(least + token), &row = entriesAt(entries + token);
      // Most rows have no hit. A padding token has the bound 0 here and no entry of 255.
      if (!anyReaches(row, bound > 0 ? bound : Entries{} + 255)) continue;
      for (uint32_t i = token; i < token + tableLanes; ++i) {
        if (least[i] > 0 && entries[i] >= least[i]) hits.push_back({k, uint16_t(i), entries[i]});
      }
    }
  }
}

TARGET void quantizeEntries(const float* similarities, uint32_t rows, uint32_t stride, uint32_t tokens,
                            const float* floors, const float* factors, uint8_t* entries, uint32_t entriesStride) {
  typedef float Floats __attribute__((vector_size(REGISTER_BYTES), aligned(4)));
  typedef int32_t Integers __attribute__((vector_size(REGISTER_BYTES)));
  constexpr size_t together = 16, lanes = REGISTER_BYTES / sizeof(float);
  const auto at = [](const float* from)
                      TARGET_LAMBDA -> const Floats& { return *reinterpret_cast<const Floats*>(from); };
  for (uint32_t k = 0; k < rows; ++k, similarities += stride, entries += entriesStride) {
    for (size_t first = 0; first < tokens; first += together) {
      Integers rounded[together / lanes];
#pragma GCC unroll 4
      for (size_t i = first; i < first + together; i += lanes) {
        Floats entry = (at(similarities + i) - at(floors + i)) * at(factors + i) + 0.5f;
        entry = entry > 0.0f ? entry : Floats{};
        entry = entry < 255.0f ? entry : Floats{} + 255.0f;
        rounded[(i - first) / lanes] = __builtin_convertvector(entry, Integers);
      }
#if REGISTER_BYTES == 32
      const __m256i crossed = _mm256_packus_epi32(__m256i(rounded[0]), __m256i(rounded[1]));
      const __m256i words = _mm256_permute4x64_epi64(crossed, 0xd8);
      const __m128i narrow = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
#else
      uint8_t narrow[together];
      for (size_t i = 0; i < together; ++i) narrow[i] = uint8_t(rounded[i / lanes][i % lanes]);
#endif
      std::memcpy(entries + first, &narrow, together);
    }
  }
}

constexpr CodeLoops codeLoops(const char* name) {
  return {name, quantizeEntries, sumOfMaxima, sumOfResidualMaxima, collectHits};
}

}  // namespace
}  // namespace maxsimd
