#include "engine/codebook.h"

#include "kernels/half.h"
#include "store/crc32c.h"
#include "store/error.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace maxsimd {
namespace {

/// Token vectors compared with all centroids at a time.
constexpr uint32_t assignTokens = 64;

}  // namespace

Codebook::Codebook(const Kernel& kernel, const std::string& id, uint32_t dim, std::span<const int8_t> vectors,
                   std::span<const float> scales)
    : kernel_(kernel), dim_(dim) {
  const auto count = uint32_t(scales.size());
  require(count >= 1 && count <= codebookCountMax, "codebook.count must be 1..65536");
  require(vectors.size() == size_t(count) * dim, "codebook.vectors must hold count x dim values");
  float largest = 0.0f;
  for (const float scale : scales) {
    require(std::isfinite(scale) && scale > 0.0f, "codebook.scales must be positive and finite");
    largest = std::max(largest, scale);
  }
  vectors_.assign(vectors.begin(), vectors.end());
  vectors_.resize(vectors_.size() + readPaddingBytes);
  // Only ratios of centroid scales matter: relative to the largest, half precision always fits.
  for (const float scale : scales) scales_.push_back(floatToHalf(scale / largest));
  scales_.resize(count + readPaddingBytes);
  unit_ = largest;
  centroids_ = {vectors_.data(), scales_.data(), count};
  const uint32_t content = crc32c(scales.data(), scales.size_bytes(), crc32c(vectors.data(), vectors.size()));
  hash_ = uint64_t(crc32c(id.data(), id.size(), count * 2 + 1)) << 32 | content | 1;
}

void Codebook::assign(RecordParts& parts) const {
  const uint32_t rows = parts.rows();
  std::vector<uint16_t> nearest(rows);
  std::vector<float> similarities(paddedTokens(assignTokens));
  std::vector<uint32_t> centroids(paddedTokens(assignTokens));
  for (uint32_t first = 0; first < rows; first += assignTokens) {
    const uint32_t tokens = std::min(assignTokens, rows - first);
    const Query block(kernel_, parts.vectors.data() + size_t(first) * dim_, tokens, dim_);
    kernel_.best(block.packed(), centroids_, similarities.data(), centroids.data());
    for (uint32_t i = 0; i < tokens; ++i) nearest[first + i] = uint16_t(centroids[i]);
  }
  parts.codebook = hash_;
  parts.codes.clear();
  parts.codeOffsets.assign(1, 0);
  uint32_t row = 0;
  for (const uint32_t chunkRows : parts.chunkRows) {
    const auto start = nearest.begin() + row;
    std::sort(start, start + chunkRows);
    parts.codes.insert(parts.codes.end(), start, std::unique(start, start + chunkRows));
    parts.codeOffsets.push_back(uint32_t(parts.codes.size()));
    row += chunkRows;
  }
}

Codebook::Table Codebook::table(const PackedQuery& query) const {
  // Padded to whole 32-byte steps, whose missing tokens stay at level 0.
  Table table{(query.tokensPadded + 31) & ~31u, {}, 0.0f, 0.0f};
  const uint32_t stride = query.tokensPadded;
  std::vector<float> similarities(size_t(count()) * stride);
  kernel_.similarities(query, centroids_, similarities.data());
  std::vector<float> least(stride, 0.0f), most(stride, 0.0f);
  for (uint32_t k = 0; k < count(); ++k) {
    for (uint32_t i = 0; i < stride; ++i) {
      const float similarity = similarities[size_t(k) * stride + i];
      least[i] = k == 0 ? similarity : std::min(least[i], similarity);
      most[i] = k == 0 ? similarity : std::max(most[i], similarity);
    }
  }
  float range = 0.0f;
  for (uint32_t i = 0; i < query.tokens; ++i) range = std::max(range, (most[i] - least[i]) * query.scales[i] * unit_);
  table.step = range / 255.0f;
  std::vector<float> factor(stride, 0.0f);
  for (uint32_t i = 0; i < query.tokens; ++i) {
    table.base += least[i] * query.scales[i] * unit_ + query.offsets[i];
    factor[i] = range > 0.0f ? query.scales[i] * unit_ / table.step : 0.0f;
  }
  table.levels.assign(size_t(count()) * table.tokensPadded, 0);
  for (uint32_t k = 0; k < count(); ++k) {
    const float* from = similarities.data() + size_t(k) * stride;
    uint8_t* to = table.levels.data() + size_t(k) * table.tokensPadded;
    for (uint32_t i = 0; i < stride; ++i) to[i] = uint8_t(std::min((from[i] - least[i]) * factor[i] + 0.5f, 255.0f));
  }
  return table;
}

}  // namespace maxsimd
