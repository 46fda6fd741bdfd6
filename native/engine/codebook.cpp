#include "engine/codebook.h"

#include "engine/nearest.h"
#include "kernels/half.h"
#include "store/crc32c.h"
#include "store/error.h"

#include <algorithm>
#include <cmath>

namespace maxsimd {
namespace {

/// Groups whose centroids a token vector is compared with.
constexpr uint32_t probedGroups = 8;
/// Token vectors sorted by group at a time: enough that a group's share fills blocks of the kernel.
constexpr uint32_t batchRows = 4096;
constexpr float levelMost = 255.0f;
/// Centroids whose similarities one thread computes at a time.
constexpr uint32_t tableCentroids = 1024;

bool usable(const CodebookData& data) {
  if (data.groupStarts.size() < 2 || data.groupStarts.front() != 0) return false;
  if (data.count() < 1 || data.count() > centroidsMax) return false;
  if (!std::is_sorted(data.groupStarts.begin(), data.groupStarts.end(), std::less_equal<>())) return false;
  const auto fits = [&](const std::vector<int8_t>& vectors, const std::vector<uint16_t>& scales, size_t count) {
    return vectors.size() == count * data.dim + readPaddingBytes && scales.size() == count + readPaddingBytes &&
           std::all_of(scales.begin(), scales.begin() + long(count),
                       [](uint16_t scale) { return halfIsFinite(scale) && halfToFloat(scale) > 0.0f; });
  };
  if (!std::isfinite(data.share) || data.codewords.size() != size_t(data.subspaces()) * codewords * subspaceDim)
    return false;
  if (!std::all_of(data.codewords.begin(), data.codewords.end(), [](float value) { return std::isfinite(value); }))
    return false;
  return fits(data.centroids, data.scales, data.count()) && fits(data.groups, data.groupScales, data.groupCount());
}

uint64_t contentHash(const CodebookData& data) {
  const size_t scaleBytes = data.count() * sizeof(uint16_t);
  const uint32_t low = crc32c(data.scales.data(), scaleBytes, crc32c(data.centroids.data(), data.centroids.size()));
  const uint32_t high =
      crc32c(data.groupStarts.data(), data.groupStarts.size() * 4, crc32c(data.groups.data(), data.groups.size()));
  return uint64_t(crc32c(data.codewords.data(), data.codewords.size() * sizeof(float), high)) << 32 | low;
}

}  // namespace

Codebook::Codebook(const Kernel& kernel, CodebookData data) : kernel_(kernel), data_(std::move(data)) {
  if (!usable(data_)) throw Error(ErrorCode::corrupt, "damaged codebook");
  hash_ = contentHash(data_);
  columns_.resize(data_.codewords.size());
  halfSquares_.assign(size_t(data_.subspaces()) * codewords, 0.0f);
  for (size_t m = 0; m < data_.subspaces(); ++m) {
    for (size_t w = 0; w < codewords; ++w) {
      for (size_t d = 0; d < subspaceDim; ++d) {
        const float value = data_.codewords[(m * codewords + w) * subspaceDim + d];
        columns_[(m * subspaceDim + d) * codewords + w] = value;
        halfSquares_[m * codewords + w] += value * value / 2;
      }
    }
  }
}

void Codebook::encode(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint16_t* codes,
                      uint8_t* bytes) const {
  const uint32_t dim = data_.dim, subspaces = data_.subspaces();
  std::vector<float> left(size_t(subspaces) * subspaceDim, 0.0f);
  for (uint32_t r = 0; r < rows; ++r) {
    const float scale = halfToFloat(scales[r]);
    const float share = data_.share * halfToFloat(data_.scales[codes[r]]);
    const int8_t* vector = vectors + size_t(r) * dim;
    const int8_t* centroid = data_.centroids.data() + size_t(codes[r]) * dim;
    for (uint32_t d = 0; d < dim; ++d) left[d] = float(vector[d]) * scale - float(centroid[d]) * share;
    for (uint32_t m = 0; m < subspaces; ++m) {
      *bytes++ =
          nearestCodeword(left.data() + size_t(m) * subspaceDim, columns_.data() + size_t(m) * subspaceDim * codewords,
                          halfSquares_.data() + size_t(m) * codewords);
    }
  }
}

void Codebook::assign(const int8_t* vectors, uint32_t rows, uint16_t* codes) const {
  const uint32_t dim = data_.dim;
  const uint32_t probes = std::min(probedGroups, data_.groupCount());
  const Chunk groups{data_.groups.data(), data_.groupScales.data(), data_.groupCount()};
  std::vector<uint32_t> probed(size_t(batchRows) * probes);
  std::vector<float> best(batchRows);
  std::vector<std::vector<uint32_t>> members(data_.groupCount());
  std::vector<int8_t> gathered;
  std::vector<float> similarities;
  std::vector<uint32_t> nearest;
  for (uint32_t first = 0; first < rows; first += batchRows) {
    const uint32_t count = std::min(batchRows, rows - first);
    const int8_t* batch = vectors + size_t(first) * dim;
    nearestSeveral(kernel_, dim, batch, count, groups, probes, probed.data());
    for (auto& list : members) list.clear();
    for (uint32_t r = 0; r < count; ++r) {
      for (uint32_t p = 0; p < probes; ++p) members[probed[size_t(r) * probes + p]].push_back(r);
    }
    std::fill_n(best.begin(), count, -INFINITY);
    for (uint32_t g = 0; g < data_.groupCount(); ++g) {
      const auto& list = members[g];
      if (list.empty()) continue;
      const uint32_t start = data_.groupStarts[g];
      gathered.resize(list.size() * dim);
      for (size_t i = 0; i < list.size(); ++i) {
        std::copy_n(batch + size_t(list[i]) * dim, dim, gathered.data() + i * dim);
      }
      similarities.resize(list.size());
      nearest.resize(list.size());
      const Chunk centroids{data_.centroids.data() + size_t(start) * dim, data_.scales.data() + start,
                            data_.groupStarts[g + 1] - start};
      nearestOf(kernel_, dim, gathered.data(), uint32_t(list.size()), centroids, similarities.data(), nearest.data());
      for (size_t i = 0; i < list.size(); ++i) {
        const uint32_t row = list[i];
        const auto code = uint16_t(start + nearest[i]);
        // Ties fall to the lower centroid, whatever the order of the groups.
        if (similarities[i] < best[row] || (similarities[i] == best[row] && code > codes[first + row])) continue;
        best[row] = similarities[i];
        codes[first + row] = code;
      }
    }
  }
}

Codebook::Table Codebook::table(const PackedQuery& query, std::span<const float> vectors, Pool& pool) const {
  const uint32_t stride = query.tokensPadded, count = this->count();
  const size_t blocks = (count + tableCentroids - 1) / tableCentroids;
  // A page fault a page would cost more than the products: the memory stays with the thread.
  thread_local std::vector<float> similarities;
  similarities.resize(size_t(count) * stride);
  float* const all = similarities.data();
  struct Extremes {
    std::vector<float> sum, most;
  };
  std::vector<Extremes> parts(blocks);
  pool.parallelFor(blocks, [&](size_t b) {
    const auto first = uint32_t(b * tableCentroids);
    const uint32_t rows = std::min(tableCentroids, count - first);
    float* from = all + size_t(first) * stride;
    kernel_.similarities(query, {data_.centroids.data() + size_t(first) * data_.dim, data_.scales.data() + first, rows},
                         from);
    Extremes& part = parts[b];
    part.sum.assign(stride, 0.0f);
    part.most.assign(stride, -INFINITY);
    for (uint32_t k = 0; k < rows; ++k, from += stride) {
      for (uint32_t i = 0; i < stride; ++i) {
        part.sum[i] += from[i];
        part.most[i] = std::max(part.most[i], from[i]);
      }
    }
  });

  // The best of a chunk's centroids for a token is hardly ever among the worse half of all: steps begin at the mean.
  Table table{query.tokens, (stride + 31) & ~31u, {}, 0.0f, 0.0f, {}, 0, 0.0f, 0.0f};
  std::vector<float> mean(stride, 0.0f), factor(stride, 0.0f), ranges(stride, 0.0f);
  float range = 0.0f, floors = 0.0f, offsets = 0.0f;
  for (uint32_t i = 0; i < query.tokens; ++i) {
    float sum = 0.0f, most = -INFINITY;
    for (const Extremes& part : parts) {
      sum += part.sum[i];
      most = std::max(most, part.most[i]);
    }
    mean[i] = sum / float(count);
    ranges[i] = (most - mean[i]) * query.scales[i];
    range = std::max(range, ranges[i]);
    floors += mean[i] * query.scales[i];
    offsets += query.offsets[i];
  }
  table.base = floors + offsets;
  table.step = range / levelMost;
  for (uint32_t i = 0; i < query.tokens && range > 0.0f; ++i) factor[i] = query.scales[i] / table.step;
  table.levels.resize(size_t(count) * table.tokensPadded);
  pool.parallelFor(blocks, [&](size_t b) {
    const auto first = uint32_t(b * tableCentroids);
    const uint32_t last = std::min(first + tableCentroids, count);
    quantizeLevels(all + size_t(first) * stride, last - first, stride, mean.data(), factor.data(),
                   table.levels.data() + size_t(first) * table.tokensPadded, table.tokensPadded);
  });
  refine(table, vectors, ranges, floors, offsets);
  return table;
}

/// Steps of the residuals' table are as fine as sums of 8 bits allow: each subspace counts from its least similarity.
void Codebook::refine(Table& table, std::span<const float> vectors, const std::vector<float>& ranges, float floors,
                      float offsets) const {
  const uint32_t dim = data_.dim, subspaces = data_.subspaces(), tokens = table.tokens;
  thread_local std::vector<float> dots;
  dots.assign(size_t(tokens) * subspaces * codewords, 0.0f);
  std::vector<float> least(size_t(tokens) * subspaces);
  float span = 0.0f, leasts = 0.0f;
  for (uint32_t i = 0; i < tokens; ++i) {
    float own = data_.share * ranges[i];
    for (uint32_t m = 0; m < subspaces; ++m) {
      float* row = dots.data() + (size_t(i) * subspaces + m) * codewords;
      const uint32_t first = m * subspaceDim, last = std::min(first + subspaceDim, dim);
      for (uint32_t d = first; d < last; ++d) {
        const float component = vectors[size_t(i) * dim + d];
        const float* column = columns_.data() + size_t(d) * codewords;
        for (uint32_t w = 0; w < codewords; ++w) row[w] += component * column[w];
      }
      const auto [low, high] = std::minmax_element(row, row + codewords);
      least[size_t(i) * subspaces + m] = *low;
      leasts += *low;
      own += *high - *low;
    }
    span = std::max(span, own);
  }
  // Every one of the terms may be rounded up by half a step.
  table.refinedStep = span / (levelMost - float(subspaces + 1) / 2);
  table.refinedBase = data_.share * floors + offsets + leasts;
  table.residuals.assign(size_t(subspaces) * codewords * table.tokensPadded, 0);
  if (!(table.refinedStep > 0.0f)) return;
  table.levelFactor = uint16_t(data_.share * table.step / table.refinedStep * 256.0f);
  const float inverse = 1.0f / table.refinedStep;
  for (uint32_t m = 0; m < subspaces; ++m) {
    uint8_t* to = table.residuals.data() + size_t(m) * codewords * table.tokensPadded;
    for (uint32_t w = 0; w < codewords; ++w, to += table.tokensPadded) {
      for (uint32_t i = 0; i < tokens; ++i) {
        const size_t row = size_t(i) * subspaces + m;
        to[i] = uint8_t(int32_t((dots[row * codewords + w] - least[row]) * inverse + 0.5f));
      }
    }
  }
}

}  // namespace maxsimd
