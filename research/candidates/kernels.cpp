// The inner loops of the comparison of candidate generators, so that their costs are those of compiled code.
// Plain C interface; kernels.py compiles and loads it. All matrices are row-major; chunk c has the rows
// [offsets[c], offsets[c + 1]). Needs AVX-512 VNNI.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr uint32_t dim = 128;
constexpr uint32_t groups = dim / 4;
/// Columns of a panel: four registers of 16.
constexpr uint32_t width = 64;
using Panel = int8_t[groups][width][4];

/// int8 columns [count x dim] as panels of 64, and what XORing rows with 0x80 adds to their products.
struct Packed {
  uint32_t panels;
  std::vector<int8_t> bytes;
  std::vector<int32_t> excess;
  std::vector<float> scales;

  Packed(const int8_t* columns, const float* columnScales, uint32_t count)
      : panels((count + width - 1) / width),
        bytes(size_t(panels) * width * dim),
        excess(size_t(panels) * width),
        scales(size_t(panels) * width) {
    for (uint32_t c = 0; c < count; ++c) {
      auto& panel = *reinterpret_cast<Panel*>(bytes.data() + size_t(c / width) * width * dim);
      for (uint32_t d = 0; d < dim; ++d) {
        const int8_t value = columns[size_t(c) * dim + d];
        panel[d / 4][c % width][d % 4] = value;
        excess[c] += 128 * value;
      }
      scales[c] = columnScales[c];
    }
  }
};

/// Products of four rows with one panel: f32, column scales applied. `rows[i]` are dim bytes, XORed with 0x80.
inline void products(const uint8_t* const rows[4], const Packed& packed, uint32_t panel, __m512 out[4][4]) {
  __m512i sums[4][4];
  const int32_t* excess = packed.excess.data() + size_t(panel) * width;
  for (int j = 0; j < 4; ++j) {
    const __m512i start = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(excess + 16 * j));
    for (int i = 0; i < 4; ++i) sums[i][j] = start;
  }
  const int8_t* columns = packed.bytes.data() + size_t(panel) * width * dim;
  for (uint32_t g = 0; g < groups; ++g) {
    __m512i column[4];
    for (int j = 0; j < 4; ++j) column[j] = _mm512_loadu_si512(columns + (size_t(g) * width + 16 * j) * 4);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      int32_t four;
      std::memcpy(&four, rows[i] + 4 * g, 4);
      const __m512i row = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], row, column[j]);
    }
  }
  const float* scales = packed.scales.data() + size_t(panel) * width;
  for (int j = 0; j < 4; ++j) {
    const __m512 scale = _mm512_loadu_ps(scales + 16 * j);
    for (int i = 0; i < 4; ++i) out[i][j] = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i][j]), scale);
  }
}

std::vector<uint8_t> unsignedRows(const int8_t* rows, size_t count) {
  std::vector<uint8_t> out(count * dim);
  for (size_t i = 0; i < out.size(); ++i) out[i] = uint8_t(rows[i]) ^ 0x80;
  return out;
}

}  // namespace

extern "C" {

/// nearest[r] = the column with the largest product with row r (the row's own scale does not matter);
/// columns beyond `columnCount` of the last panel are left out.
void nearest_columns(const int8_t* rows, uint32_t rowCount, const int8_t* columns, const float* columnScales,
                     uint32_t columnCount, uint32_t* nearest) {
  const Packed packed(columns, columnScales, columnCount);
  constexpr uint32_t block = 512;
  std::vector<float> best(block * 16);
  std::vector<int32_t> at(block * 16);
  for (uint32_t first = 0; first < rowCount; first += block) {
    const uint32_t count = std::min(block, rowCount - first);
    const auto bytes = unsignedRows(rows + size_t(first) * dim, count);
    std::fill(best.begin(), best.end(), -std::numeric_limits<float>::infinity());
    for (uint32_t p = 0; p < packed.panels; ++p) {
      for (uint32_t r = 0; r < count; r += 4) {
        const uint8_t* four[4];
        for (uint32_t i = 0; i < 4; ++i) four[i] = bytes.data() + size_t(std::min(r + i, count - 1)) * dim;
        __m512 out[4][4];
        products(four, packed, p, out);
        for (uint32_t i = 0; i < 4 && r + i < count; ++i) {
          __m512 top = _mm512_loadu_ps(&best[(r + i) * 16]);
          __m512i where = _mm512_loadu_si512(&at[(r + i) * 16]);
          for (uint32_t j = 0; j < 4; ++j) {
            const uint32_t column = p * width + 16 * j;
            if (column >= columnCount) break;
            const uint32_t left = columnCount - column;
            const __mmask16 inside = left >= 16 ? 0xffff : uint16_t((1u << left) - 1);
            const __mmask16 better = _mm512_mask_cmp_ps_mask(inside, out[i][j], top, _CMP_GT_OQ);
            top = _mm512_mask_mov_ps(top, better, out[i][j]);
            where = _mm512_mask_set1_epi32(where, better, int32_t(column));
          }
          _mm512_storeu_ps(&best[(r + i) * 16], top);
          _mm512_storeu_si512(&at[(r + i) * 16], where);
        }
      }
    }
    for (uint32_t r = 0; r < count; ++r) {
      uint32_t lane = 0;
      for (uint32_t k = 1; k < 16; ++k) {
        if (best[r * 16 + k] > best[r * 16 + lane]) lane = k;
      }
      nearest[first + r] = uint32_t(at[r * 16 + lane]) + lane;
    }
  }
}

/// best[c][q] = max over the chunk's rows of row . column q, f32 [chunks x columnCount].
void chunk_maxima(const int8_t* rows, const float* rowScales, const uint64_t* offsets, uint32_t chunks,
                  const int8_t* columns, const float* columnScales, uint32_t columnCount, float* best) {
  const Packed packed(columns, columnScales, columnCount);
  std::vector<float> padded(width);
  for (uint32_t c = 0; c < chunks; ++c) {
    const uint64_t first = offsets[c], count = offsets[c + 1] - first;
    const auto bytes = unsignedRows(rows + first * dim, count);
    for (uint32_t p = 0; p < packed.panels; ++p) {
      __m512 top[4];
      for (auto& one : top) one = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
      for (uint64_t r = 0; r < count; r += 4) {
        const uint8_t* four[4];
        uint64_t row[4];
        for (uint32_t i = 0; i < 4; ++i) {
          row[i] = std::min(r + i, count - 1);
          four[i] = bytes.data() + row[i] * dim;
        }
        __m512 out[4][4];
        products(four, packed, p, out);
        for (int i = 0; i < 4; ++i) {
          const __m512 scale = _mm512_set1_ps(rowScales[first + row[i]]);
          for (int j = 0; j < 4; ++j) top[j] = _mm512_max_ps(top[j], _mm512_mul_ps(out[i][j], scale));
        }
      }
      for (int j = 0; j < 4; ++j) _mm512_storeu_ps(&padded[16 * j], top[j]);
      const uint32_t column = p * width;
      std::memcpy(best + size_t(c) * columnCount + column, padded.data(),
                  std::min(width, columnCount - column) * sizeof(float));
    }
  }
}

/// scores[i] = sum over query tokens of the greatest level among the codes of chunk which[i] (of chunk i when
/// `which` is null). `levels` is u8 [centroids x tokens], tokens a multiple of 32.
void code_scores(const uint8_t* levels, uint32_t tokens, const uint16_t* codes, const uint64_t* offsets,
                 const uint32_t* which, uint32_t count, uint32_t* scores) {
  for (uint32_t n = 0; n < count; ++n) {
    const uint32_t chunk = which ? which[n] : n;
    uint32_t sum = 0;
    for (uint32_t t = 0; t < tokens; t += 32) {
      __m256i top = _mm256_setzero_si256();
      for (uint64_t c = offsets[chunk]; c < offsets[chunk + 1]; ++c) {
        const auto* row = levels + size_t(codes[c]) * tokens + t;
        top = _mm256_max_epu8(top, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
      }
      const __m256i sums = _mm256_sad_epu8(top, _mm256_setzero_si256());
      sum += uint32_t(_mm256_extract_epi64(sums, 0) + _mm256_extract_epi64(sums, 1) + _mm256_extract_epi64(sums, 2) +
                      _mm256_extract_epi64(sums, 3));
    }
    scores[n] = sum;
  }
}

/// Like code_scores with what is left of each token vector: a row's level is coarse[rowCodes[r]] plus, for each of
/// `parts`, fine[part][entry of the row]; i16 tables, [centroids x tokens] and [parts x 2^bits x tokens], tokens a
/// multiple of 32. An entry is a byte, or with 4 bits a nibble, the low one first. `offsets` are rows of chunks.
void residual_scores(const int16_t* coarse, const int16_t* fine, uint32_t tokens, const uint16_t* rowCodes,
                     const uint8_t* rowParts, uint32_t parts, uint32_t bits, const uint64_t* offsets,
                     const uint32_t* which, uint32_t count, int32_t* scores) {
  for (uint32_t n = 0; n < count; ++n) {
    const uint64_t first = offsets[which[n]], last = offsets[which[n] + 1];
    int32_t sum = 0;
    for (uint32_t t = 0; t < tokens; t += 32) {
      __m512i top = _mm512_set1_epi16(std::numeric_limits<int16_t>::min());
      for (uint64_t r = first; r < last; ++r) {
        __m512i level = _mm512_loadu_si512(coarse + size_t(rowCodes[r]) * tokens + t), other = _mm512_setzero_si512();
        if (bits == 4) {
          const uint8_t* own = rowParts + r * (parts / 2);
          const int16_t* table = fine + t;
          for (uint32_t p = 0; p < parts; p += 2, table += size_t(32) * tokens) {
            const uint32_t pair = own[p / 2];
            level = _mm512_add_epi16(level, _mm512_loadu_si512(table + (pair & 15) * tokens));
            other = _mm512_add_epi16(other, _mm512_loadu_si512(table + (16 + (pair >> 4)) * tokens));
          }
        } else {
          const uint8_t* own = rowParts + r * parts;
          for (uint32_t p = 0; p < parts; ++p) {
            level = _mm512_add_epi16(level, _mm512_loadu_si512(fine + (size_t(p) * 256 + own[p]) * tokens + t));
          }
        }
        top = _mm512_max_epi16(top, _mm512_add_epi16(level, other));
      }
      sum += _mm512_reduce_add_epi32(_mm512_madd_epi16(top, _mm512_set1_epi16(1)));
    }
    scores[n] = sum;
  }
}

/// Partial sums over inverted lists: list k of block b is entries [listOffsets[b * (centroids + 1) + k], ...) of
/// `entries`, chunk numbers within the block of 65,536. Token t probes (probeCentroids, probeGains)
/// [probeOffsets[t], probeOffsets[t + 1]), best first; a chunk gains what the first list it is on gives.
/// Writes gains, u32 [chunks], and returns the entries walked.
uint64_t list_gains(const uint16_t* entries, const uint32_t* listOffsets, uint32_t centroids, uint32_t chunks,
                    const uint32_t* probeOffsets, const uint32_t* probeCentroids, const uint32_t* probeGains,
                    uint32_t tokens, uint32_t* gains) {
  constexpr uint32_t block = 65536, sumBits = 20, sumMask = (1u << sumBits) - 1;
  uint64_t walked = 0;
  for (uint32_t b = 0; b * block < chunks; ++b) {
    uint32_t* own = gains + size_t(b) * block;
    const uint32_t count = std::min(block, chunks - b * block);
    const uint32_t* offsets = listOffsets + size_t(b) * (centroids + 1);
    std::memset(own, 0, count * sizeof *own);
    for (uint32_t t = 0; t < tokens; ++t) {
      const uint32_t stamp = (t + 1) << sumBits;
      for (uint32_t p = probeOffsets[t]; p < probeOffsets[t + 1]; ++p) {
        const uint32_t gain = probeGains[p], first = offsets[probeCentroids[p]], last = offsets[probeCentroids[p] + 1];
        walked += last - first;
        for (uint32_t e = first; e < last; ++e) {
          const uint32_t old = own[entries[e]];
          own[entries[e]] = (old & ~sumMask) == stamp ? old : stamp | ((old & sumMask) + gain);
        }
      }
    }
    for (uint32_t c = 0; c < count; ++c) own[c] &= sumMask;
  }
  return walked;
}

/// The largest sum that at least `wanted` of `sums` reach; 0 when there are fewer.
uint32_t threshold(const uint32_t* sums, uint32_t count, uint32_t wanted) {
  uint32_t least = *std::max_element(sums, sums + count);
  std::vector<uint32_t> histogram(least + 1);
  for (uint32_t i = 0; i < count; ++i) ++histogram[sums[i]];
  for (uint64_t met = histogram[least]; met < wanted && least > 0;) met += histogram[--least];
  return least;
}

/// Fixed dimensional encodings of chunks (MUVERA, arXiv 2405.19504) of one repetition: `projected` is f32
/// [rows x size], `cells` the SimHash cell of each row (< cellCount, a power of two). A cell holds the mean of its
/// rows, or, without any, the row whose cell differs in the fewest bits. Writes f32 [chunks x cellCount * size].
void chunk_encodings(const float* projected, const uint8_t* cells, const uint64_t* offsets, uint32_t chunks,
                     uint32_t cellCount, uint32_t size, uint64_t stride, float* out) {
  std::vector<uint32_t> members(cellCount);
  for (uint32_t c = 0; c < chunks; ++c) {
    float* encoding = out + c * stride;
    std::fill(encoding, encoding + size_t(cellCount) * size, 0.0f);
    std::fill(members.begin(), members.end(), 0u);
    for (uint64_t r = offsets[c]; r < offsets[c + 1]; ++r) {
      float* cell = encoding + size_t(cells[r]) * size;
      for (uint32_t d = 0; d < size; ++d) cell[d] += projected[r * size + d];
      ++members[cells[r]];
    }
    for (uint32_t k = 0; k < cellCount; ++k) {
      float* cell = encoding + size_t(k) * size;
      if (members[k] > 0) {
        for (uint32_t d = 0; d < size; ++d) cell[d] /= float(members[k]);
        continue;
      }
      uint64_t closest = offsets[c];
      for (uint64_t r = offsets[c]; r < offsets[c + 1]; ++r) {
        if (__builtin_popcount(cells[r] ^ k) < __builtin_popcount(cells[closest] ^ k)) closest = r;
      }
      for (uint32_t d = 0; d < size; ++d) cell[d] = projected[closest * size + d];
    }
  }
}

}  // extern "C"
