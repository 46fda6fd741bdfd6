// Random records and clustered vectors for tests.
#pragma once

#include "candidates/index_search.h"
#include "kernels/approximate/code_span.h"
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

  Clusters(Random& random, uint32_t dimension, uint32_t count) : dim(dimension), centres(count) {
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
  parts.vectors.resize(size_t(rows) * clusters.dim);
  parts.scales.resize(rows);
  uint32_t row = 0;
  for (const uint32_t count : chunkRows) {
    const auto topic = uint32_t(random() % clusters.centres.size());
    for (uint32_t r = 0; r < count; ++r, ++row) {
      const uint32_t centre = (topic + uint32_t(random() % 12)) % uint32_t(clusters.centres.size());
      float scale;
      quantise(clusters.near(random, centre), parts.vectors.data() + size_t(row) * clusters.dim, &scale);
      parts.scales[row] = floatToHalf(scale);
    }
  }
  parts.vectors.resize(parts.vectors.size() + readPaddingBytes);
  for (const Term& one : terms) parts.terms.insert(parts.terms.end(), one.begin(), one.end());
  return parts;
}

/// Codes as they stand in a file, of two or three bytes.
class PackedCodes {
 public:
  PackedCodes(Random& random, const std::vector<uint32_t>& codes)
      : count_(uint32_t(codes.size())), codeBytes_(between(random, 2, 3)) {
    for (const uint32_t code : codes) {
      for (uint32_t b = 0; b < codeBytes_; ++b) bytes_.push_back(uint8_t(code >> 8 * b));
    }
    for (int padding = 0; padding < 2; ++padding) bytes_.push_back(uint8_t(random()));
  }

  CodeSpan span() const { return {bytes_.data(), count_, codeBytes_}; }

 private:
  const uint32_t count_, codeBytes_;
  std::vector<uint8_t> bytes_;
};

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
