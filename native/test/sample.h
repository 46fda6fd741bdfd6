// Random records and clustered vectors for tests.
#pragma once

#include "candidates/index_search.h"
#include "kernels/contract.h"
#include "kernels/half.h"
#include "store/postings.h"
#include "store/record.h"
#include "test/check.h"

#include <cmath>
#include <vector>

namespace maxsimd::test {

/// Token vectors near one of `centres`; a chunk keeps to a few of them.
struct Clusters {
  uint32_t dim;
  std::vector<std::vector<float>> centres;

  /// Bits of the rows that are made of them.
  uint32_t bits;

  Clusters(Random& random, uint32_t dimension, uint32_t count, uint32_t rowBits = 8)
      : dim(dimension), centres(count), bits(rowBits) {
    std::normal_distribution<float> normal;
    for (auto& centre : centres) {
      centre.resize(dim);
      for (auto& value : centre) value = normal(random);
    }
  }

  std::vector<float> near(Random& random, uint32_t centre) const {
    std::normal_distribution<float> noise(0.0f, 0.5f);
    std::vector<float> vector = centres[centre];
    double square = 0;
    for (auto& value : vector) {
      value += noise(random);
      square += double(value) * value;
    }
    for (auto& value : vector) value /= float(std::sqrt(square));
    return vector;
  }
};

inline void quantise(const std::vector<float>& vector, int8_t* out, float* scale) {
  float largest = 1e-20f;
  for (const float value : vector) largest = std::max(largest, std::abs(value));
  *scale = largest / 127.0f;
  for (size_t d = 0; d < vector.size(); ++d) out[d] = int8_t(std::nearbyint(vector[d] / *scale));
}

/// A row of few bits: codes between two standard deviations, and the scale of native/kernels/rows.h.
inline void quantiseFewBits(const std::vector<float>& vector, uint32_t bits, int8_t* out, float* scale) {
  const RowShape shape(uint32_t(vector.size()), bits);
  const int32_t most = componentMost(bits);
  const float step = bits == 1 ? 4.0f : 4.0f / float(most + 1) / std::sqrt(float(shape.dim));
  double squares = 0, product = 0;
  std::fill_n(out, shape.bytes(), int8_t(0));
  for (uint32_t d = 0; d < shape.dim; ++d) {
    const int32_t code = std::clamp(int32_t(std::floor(vector[d] / step)) + (most + 1) / 2, 0, most);
    const uint32_t width = stripCodes / 8 * bits, within = d % stripCodes;
    int8_t& byte = out[d / stripCodes * width + within % width];
    byte = int8_t(uint8_t(byte) | uint32_t(code) << within / width * bits);
    CHECK(componentOf(out, bits, d) == 2 * code - most);
    squares += double(vector[d]) * vector[d];
    product += double(vector[d]) * (2 * code - most);
  }
  *scale = float(squares / product);
}

inline Term term(uint8_t value) {
  Term bytes{};
  bytes[0] = value;
  return bytes;
}

inline RecordParts randomRecord(Random& random, const Clusters& clusters, uint64_t versionId,
                                const std::vector<uint32_t>& chunkRows, const std::vector<Term>& terms = {}) {
  RecordParts parts;
  parts.versionId = versionId;
  parts.chunkRows = chunkRows;
  const uint32_t rows = parts.rows();
  const RowShape shape(clusters.dim, clusters.bits);
  parts.vectors.resize(rows * shape.bytes());
  parts.scales.resize(rows);
  uint32_t row = 0;
  for (const uint32_t count : chunkRows) {
    const auto topic = uint32_t(random() % clusters.centres.size());
    for (uint32_t r = 0; r < count; ++r, ++row) {
      const uint32_t centre = (topic + uint32_t(random() % 12)) % uint32_t(clusters.centres.size());
      float scale;
      int8_t* const stored = parts.vectors.data() + row * shape.bytes();
      if (shape.bits == 8) quantise(clusters.near(random, centre), stored, &scale);
      else quantiseFewBits(clusters.near(random, centre), shape.bits, stored, &scale);
      parts.scales[row] = floatToHalf(scale);
    }
  }
  parts.vectors.resize(parts.vectors.size() + readPaddingBytes);
  for (uint32_t c = 0; c < chunkRows.size(); ++c) {
    parts.ranges.push_back({c, c + 1 + uint32_t(versionId), chunkRows[c]});
    for (uint32_t r = 0; r < chunkRows[c]; ++r) parts.places.push_back(uint8_t(16 * c + r));
  }
  for (const Term& one : terms) parts.terms.insert(parts.terms.end(), one.begin(), one.end());
  return parts;
}

/// A search of `tokens` query tokens at generation 1.
inline IndexSearch searchOf(const std::vector<float>& query, size_t tokens, uint32_t topK, uint32_t candidateK,
                            Plan plan) {
  IndexSearch request{};
  request.query = query;
  request.offsets.resize(tokens);
  request.topK = topK;
  request.candidateK = candidateK;
  request.generation = 1;
  request.plan = plan;
  return request;
}

}  // namespace maxsimd::test
