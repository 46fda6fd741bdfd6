#include "candidates/query_tables.h"

#include "codes/search_tuning.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace maxsimd {
namespace {

/// Centroids that are multiplied together. Their similarities take 32 KiB for 32 tokens, so they stay in a fast cache.
constexpr uint32_t blockCentroids = 256;

}  // namespace

QueryTables::QueryTables(const Kernel& kernel, std::span<const float> vectors, std::span<const float> offsets,
                         uint32_t dim, std::span<const Codebook* const> codebooks, Pool& pool)
    : kernel_(kernel),
      pool_(pool),
      codebooks_(codebooks),
      smallQuery_(kernel, vectors, offsets, dim, Query::Values::small),
      query_(smallQuery_.packed()),
      tokens_(query_.tokens),
      tokensPadded_(tableTokens(tokens_)),
      floors_(query_.tokensPadded, 0.0f),
      tables_(codebooks.size()) {
  setSteps(vectors);
  pool.parallelFor(tables_.size(), [&](size_t b) {
    const uint32_t rows = std::bit_ceil(codebooks[b]->count());
    tables_[b].entries.assign(size_t(rows) * tokensPadded_, 0);
    tables_[b].residual.codeMask = rows - 1;
    tables_[b].floors.assign(query_.tokensPadded, 0.0f);
    tables_[b].factors.assign(query_.tokensPadded, 0.0f);
    for (uint32_t i = 0; i < tokens_; ++i) {
      const float unit = codebooks[b]->data().share * query_.scales[i];
      if (!(unit > 0.0f) || step_ == 0.0f) continue;
      tables_[b].floors[i] = floors_[i] / unit;
      tables_[b].factors[i] = unit / step_;
    }
    setResiduals(codebooks[b]->data(), vectors, tables_[b]);
  });
}

void QueryTables::addAll() {
  for (size_t b = 0; b < tables_.size(); ++b) {
    const CodebookData& data = codebooks_[b]->data();
    pool_.parallelFor((data.count() + blockCentroids - 1) / blockCentroids, [&](size_t block) {
      const size_t first = block * blockCentroids;
      const auto count = uint32_t(std::min<size_t>(blockCentroids, data.count() - first));
      fillEntries(tables_[b], {data.centroids.data() + first * data.dim, data.scales.data() + first, count},
                  tables_[b].entries.data() + first * tokensPadded_);
    });
  }
}

void QueryTables::addNearest(uint32_t wanted, std::span<const std::shared_ptr<const CentroidGraph>> graphs,
                             const Deadline& deadline) {
  for (size_t b = 0; b < tables_.size(); ++b) {
    std::vector<std::vector<uint32_t>> nearest(tokens_);
    pool_.parallelFor(tokens_, [&](size_t i) {
      deadline.check();
      nearest[i] = graphs[b]->nearest(smallQuery_.quantised().data() + i * query_.dim, wanted);
    });
    Bitmap near(codebooks_[b]->count());
    for (const auto& centroids : nearest) {
      for (const uint32_t centroid : centroids) near.set(centroid);
    }
    add(b, near);
  }
}

void QueryTables::add(size_t codebook, const Bitmap& centroids) {
  const CodebookData& data = codebooks_[codebook]->data();
  std::vector<uint32_t> missing;
  centroids.forEach(0, data.count(), [&](uint32_t centroid) { missing.push_back(centroid); });
  pool_.parallelFor((missing.size() + blockCentroids - 1) / blockCentroids, [&](size_t block) {
    // Copied side by side, because the kernel multiplies all of them with all tokens at once.
    std::vector<int8_t> vectors(size_t(blockCentroids) * data.dim + readPaddingBytes);
    uint16_t scales[blockCentroids + readPaddingBytes];
    AlignedVector<uint8_t> entries(size_t(blockCentroids) * tokensPadded_);
    const size_t first = block * blockCentroids;
    const auto count = uint32_t(std::min<size_t>(blockCentroids, missing.size() - first));
    for (uint32_t i = 0; i < count; ++i) {
      const size_t centroid = missing[first + i];
      std::copy_n(data.centroids.data() + centroid * data.dim, data.dim, vectors.data() + size_t(i) * data.dim);
      scales[i] = data.scales[centroid];
    }
    fillEntries(tables_[codebook], {vectors.data(), scales, count}, entries.data());
    for (uint32_t i = 0; i < count; ++i)
      std::copy_n(entries.data() + size_t(i) * tokensPadded_, tokensPadded_,
                  tables_[codebook].entries.data() + size_t(missing[first + i]) * tokensPadded_);
  });
}

/// Sets the range of the entries. It begins at the mean similarity of a token with all groups of centroids, because the
/// best centroid of a chunk is hardly ever below that. It ends at the similarity with a vector in the token's own
/// direction.
void QueryTables::setSteps(std::span<const float> vectors) {
  const uint32_t stride = query_.tokensPadded;
  uint64_t groups = 0;
  float share = 0.0f;
  std::vector<float> similarities;
  for (const Codebook* codebook : codebooks_) {
    const CodebookData& data = codebook->data();
    similarities.resize(size_t(data.groupCount()) * stride);
    kernel_.similarities(query_, {data.groups.data(), data.groupScales.data(), data.groupCount()}, similarities.data());
    for (uint32_t g = 0; g < data.groupCount(); ++g) {
      for (uint32_t i = 0; i < tokens_; ++i)
        floors_[i] += similarities[size_t(g) * stride + i] * data.share * query_.scales[i];
    }
    groups += data.groupCount();
    share = std::max(share, data.share);
  }
  float range = 0.0f;
  for (uint32_t i = 0; i < tokens_; ++i) {
    floors_[i] /= float(groups);
    float square = 0.0f;
    for (uint32_t d = 0; d < query_.dim; ++d) {
      const float component = vectors[size_t(i) * query_.dim + d];
      square += component * component;
    }
    lengths_.push_back(std::sqrt(square));
    range = std::max(range, share * lengths_[i] - floors_[i]);
    base_ += floors_[i] + query_.offsets[i];
  }
  // A query of zeros has no range. All its entries are 0.
  step_ = range > 0.0f ? range / float(entryMax) : 0.0f;
}

/// Computes the entries of at most `blockCentroids` centroids.
void QueryTables::fillEntries(const CodebookTable& table, const Chunk& centroids, uint8_t* entries) const {
  thread_local std::vector<float> similarities;
  similarities.resize(size_t(blockCentroids) * query_.tokensPadded);
  kernel_.similarities(query_, centroids, similarities.data());
  kernel_.loops->quantizeEntries(similarities.data(), centroids.rows, query_.tokensPadded, query_.tokensPadded,
                                 table.floors.data(), table.factors.data(), entries, tokensPadded_);
}

/// The components of all tokens that codewords describe: f32 [subspaces * width][tokensPadded_]. The same component of
/// all tokens lies side by side.
std::vector<float> QueryTables::columnsOf(const CodebookData& data, std::span<const float> vectors) const {
  const size_t stride = tokensPadded_;
  std::vector<float> columns(size_t(subspaces) * data.subspaceDim() * stride, 0.0f);
  if (data.directions.empty()) {
    for (uint32_t i = 0; i < tokens_; ++i) {
      for (uint32_t d = 0; d < data.dim; ++d) columns[d * stride + i] = vectors[size_t(i) * data.dim + d];
    }
    return columns;
  }
  std::vector<float> similarities(size_t(data.components()) * query_.tokensPadded);
  kernel_.similarities(query_, {data.directions.data(), data.directionScales.data(), data.components()},
                       similarities.data());
  for (size_t p = 0; p < data.components(); ++p) {
    for (uint32_t i = 0; i < tokens_; ++i)
      columns[p * stride + i] = similarities[p * query_.tokensPadded + i] * query_.scales[i];
  }
  return columns;
}

/// Computes the similarities of the query with all codewords, as bytes. In each subspace they count from the least one,
/// so that the step can be as fine as a sum of 8 bits allows.
void QueryTables::setResiduals(const CodebookData& data, std::span<const float> vectors, CodebookTable& table) const {
  const uint32_t stride = tokensPadded_, width = data.subspaceDim();
  const std::vector<float> columns = columnsOf(data, vectors);
  std::vector<float> dots(size_t(subspaces) * codewords * stride, 0.0f), least(size_t(subspaces) * stride);
  std::vector<float> spans(tokens_, step_ * float(entryMax));
  float leasts = 0.0f;
  for (uint32_t m = 0; m < subspaces; ++m) {
    float* const own = dots.data() + size_t(m) * codewords * stride;
    for (uint32_t w = 0; w < codewords; ++w) {
      for (uint32_t d = 0; d < width; ++d) {
        const float component = data.codewords[(size_t(m) * codewords + w) * width + d];
        const float* const column = columns.data() + (size_t(m) * width + d) * stride;
        for (uint32_t i = 0; i < stride; ++i) own[w * stride + i] += component * column[i];
      }
    }
    for (uint32_t i = 0; i < tokens_; ++i) {
      float low = own[i], high = own[i];
      for (uint32_t w = 1; w < codewords; ++w) {
        low = std::min(low, own[w * stride + i]);
        high = std::max(high, own[w * stride + i]);
      }
      least[m * stride + i] = low;
      leasts += low;
      spans[i] += high - low;
    }
  }
  // Each of the `subspaces + 1` terms of a sum may be rounded up by half a step, and the sum must fit a byte.
  table.residualStep = *std::max_element(spans.begin(), spans.end()) / (float(entryMax) - float(subspaces + 1) / 2);
  table.residualBase = base_ + leasts;
  table.residuals.assign(dots.size(), 0);
  table.margins.assign(tokensPadded_, 0);
  table.residual = {tokensPadded_,          table.entries.data(), table.residual.codeMask, 0,
                    table.residuals.data(), table.margins.data()};
  if (!(table.residualStep > 0.0f)) return;
  table.residual.entryFactor = uint16_t(std::min(65535.0f, step_ / table.residualStep * 256.0f));
  const float residual = std::sqrt(std::max(0.0f, 1.0f - data.share * data.share) / float(data.dim));
  std::vector<float> factors(stride, 0.0f);
  for (uint32_t i = 0; i < tokens_; ++i) {
    factors[i] = 1.0f / table.residualStep;
    // A token vector whose entry is this far below the best of its chunk is passed over, because its residual will
    // hardly make up for it. The margin is a multiple of the standard deviation of a residual's similarity, in steps of
    // the entries.
    if (step_ > 0.0f)
      table.margins[i] =
          uint8_t(std::min(float(entryMax), SearchTuning::residualMargin * residual * lengths_[i] / step_));
  }
  for (uint32_t first = 0; first < stride; first += tableLanes) {
    for (uint32_t m = 0; m < subspaces; ++m) {
      kernel_.loops->quantizeEntries(
          dots.data() + size_t(m) * codewords * stride + first, codewords, stride, tableLanes,
          least.data() + size_t(m) * stride + first, factors.data() + first,
          table.residuals.data() + (size_t(first) * subspaces + size_t(m) * tableLanes) * codewords, tableLanes);
    }
  }
}

}  // namespace maxsimd
