#include "codes/codebook_fit.h"

#include "codes/residual_directions.h"
#include "codes/search_tuning.h"
#include "kernels/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

namespace maxsimd {
namespace {

/// A sample of `rows` zero vectors.
TokenSample emptySample(uint32_t dim, uint32_t rows) {
  return {std::vector<int8_t>(size_t(rows) * dim + readPaddingBytes), std::vector<uint16_t>(rows + readPaddingBytes),
          rows};
}

Chunk chunkOf(const TokenSample& sample) { return {sample.vectors.data(), sample.scales.data(), sample.rows}; }

/// Sets row `k` to the unit vector in the direction of `direction` (f32 [dim]).
void setDirection(TokenSample& sample, uint32_t k, std::span<const float> direction) {
  float largest = 0.0f;
  double square = 0.0;
  for (const float value : direction) {
    largest = std::max(largest, std::abs(value));
    square += double(value) * value;
  }
  const float steps = largest > 0.0f ? 127.0f / largest : 0.0f;
  const size_t dim = direction.size();
  for (size_t d = 0; d < dim; ++d) sample.vectors[k * dim + d] = int8_t(std::nearbyint(direction[d] * steps));
  sample.scales[k] = floatToHalf(largest > 0.0f ? float(largest / 127.0 / std::sqrt(square)) : 1.0f / 127.0f);
}

class Fit {
 public:
  Fit(const Kernel& kernel, uint32_t dim, const Deadline& deadline) : kernel_(kernel), dim_(dim), deadline_(deadline) {}

  /// Finds `count` centres of `rows` vectors by spherical k-means. In the end nearest[r] is the centre nearest to row
  /// r.
  TokenSample centres(const int8_t* vectors, uint32_t rows, uint32_t count, std::vector<uint32_t>& nearest) {
    TokenSample centres = emptySample(dim_, count);
    std::vector<float> direction(dim_);
    std::vector<uint32_t> order(rows);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random_);
    const auto restart = [&](uint32_t k, uint32_t row) {
      for (uint32_t d = 0; d < dim_; ++d) direction[d] = float(vectors[size_t(row) * dim_ + d]);
      setDirection(centres, k, direction);
    };
    for (uint32_t k = 0; k < count; ++k) restart(k, order[k % rows]);
    std::vector<float> similarities(rows), sums;
    std::vector<uint32_t> members;
    nearest.resize(rows);
    for (uint32_t round = 0; round < SearchTuning::fitRounds && count > 1; ++round) {
      deadline_.check();
      nearestOf(kernel_, dim_, vectors, rows, chunkOf(centres), similarities.data(), nearest.data());
      sums.assign(size_t(count) * dim_, 0.0f);
      members.assign(count, 0);
      for (uint32_t r = 0; r < rows; ++r)
        add(vectors + size_t(r) * dim_, sums.data() + size_t(nearest[r]) * dim_), ++members[nearest[r]];
      for (uint32_t k = 0; k < count; ++k) {
        if (members[k] > 0) setDirection(centres, k, {sums.data() + size_t(k) * dim_, dim_});
        else restart(k, order[random_() % rows]);
      }
    }
    nearestOf(kernel_, dim_, vectors, rows, chunkOf(centres), similarities.data(), nearest.data());
    return centres;
  }

 private:
  /// Adds `vector`, scaled to length 1, to `sum`. So long and short token vectors have the same weight.
  void add(const int8_t* vector, float* sum) const {
    int32_t square = 0;
    for (uint32_t d = 0; d < dim_; ++d) square += int32_t(vector[d]) * vector[d];
    const float inverse = square > 0 ? 1.0f / std::sqrt(float(square)) : 0.0f;
    for (uint32_t d = 0; d < dim_; ++d) sum[d] += float(vector[d]) * inverse;
  }

  const Kernel& kernel_;
  const uint32_t dim_;
  const Deadline& deadline_;
  std::mt19937_64 random_{0x6d61787369};
};

/// Finds the codewords of one subspace by k-means of `count` rows: f32 [16][width]. It starts from evenly spaced rows.
/// The rows are in blocks of sixteen, f32 [width][rowLanes], and a block begins `stride` floats after the one before
/// it.
void fitSubspace(const float* blocks, size_t stride, size_t count, uint32_t width, std::span<float> found) {
  const auto at = [&](size_t row, size_t d) { return blocks[row / rowLanes * stride + d * rowLanes + row % rowLanes]; };
  for (size_t i = 0; i < found.size(); ++i) found[i] = at(i / width * count / codewords, i % width);
  std::vector<float> sums;
  std::vector<uint32_t> members;
  uint32_t nearest[rowLanes];
  for (uint32_t round = 0; round < SearchTuning::fitRounds; ++round) {
    const std::vector<float> halfSquares = halfSquaresOf(found, width);
    sums.assign(found.size(), 0.0f);
    members.assign(codewords, 0);
    for (size_t row = 0; row < count; ++row) {
      if (row % rowLanes == 0)
        nearestCodewords(blocks + row / rowLanes * stride, found.data(), width, halfSquares.data(), nearest);
      const uint32_t word = nearest[row % rowLanes];
      for (size_t d = 0; d < width; ++d) sums[word * width + d] += at(row, d);
      ++members[word];
    }
    // A codeword that is nearest to no row stays as it is.
    for (size_t i = 0; i < found.size(); ++i) {
      if (members[i / width] > 0) found[i] = sums[i] / float(members[i / width]);
    }
  }
}

/// The residuals of some rows, in blocks of `rowLanes` rows: f32 [blocks][dim][rowLanes]. Lanes beyond the last row are
/// zeros.
std::vector<float> residualsOf(const CodebookData& data, const TokenSample& tokens,
                               const std::vector<uint32_t>& codes) {
  const size_t stride = size_t(data.dim) * rowLanes;
  std::vector<float> blocks((tokens.rows + rowLanes - 1) / rowLanes * stride, 0.0f);
  for (uint32_t first = 0; first < tokens.rows; first += rowLanes) {
    remaindersOf(data, tokens.vectors.data() + size_t(first) * data.dim, tokens.scales.data() + first,
                 codes.data() + first, std::min(rowLanes, tokens.rows - first),
                 blocks.data() + first / rowLanes * stride);
  }
  return blocks;
}

/// Computes `share` and `codewords` of a codebook that has its centroids, and its directions if they are wanted.
void fitCodewords(const Kernel& kernel, CodebookData& data, const TokenSample& tokens, const Deadline& deadline,
                  bool directions) {
  std::vector<uint32_t> codes(tokens.rows);
  data.codewords.assign(size_t(subspaces) * codewords * data.subspaceDim(), 0.0f);
  const Codebook withoutWords(kernel, data);
  withoutWords.assign(tokens.vectors.data(), tokens.rows, codes.data());
  data.share = float(withoutWords.share(tokens.vectors.data(), tokens.scales.data(), tokens.rows, codes.data()));
  if (directions) {
    const std::vector<float> found = directionsOf(residualsOf(data, tokens, codes), data.dim, deadline);
    TokenSample rows = emptySample(data.dim, uint32_t(found.size() / data.dim));
    for (uint32_t p = 0; p < rows.rows; ++p)
      setDirection(rows, p, std::span(found).subspan(size_t(p) * data.dim, data.dim));
    data.directions = std::move(rows.vectors);
    data.directionScales = std::move(rows.scales);
  }

  const uint32_t width = data.subspaceDim(), wordFloats = codewords * width;
  data.codewords.assign(size_t(subspaces) * wordFloats, 0.0f);
  const size_t stride = size_t(subspaces) * width * rowLanes;
  std::vector<float> components((tokens.rows + rowLanes - 1) / rowLanes * stride, 0.0f);
  for (uint32_t first = 0; first < tokens.rows; first += rowLanes) {
    componentsOf(kernel, data, tokens.vectors.data() + size_t(first) * data.dim, tokens.scales.data() + first,
                 codes.data() + first, std::min(rowLanes, tokens.rows - first),
                 components.data() + first / rowLanes * stride);
  }
  for (uint32_t m = 0; m < subspaces; ++m) {
    deadline.check();
    fitSubspace(components.data() + size_t(m) * width * rowLanes, stride, tokens.rows, width,
                std::span(data.codewords).subspan(size_t(m) * wordFloats, wordFloats));
  }
}

}  // namespace

CodebookData fitCodebook(const Kernel& kernel, uint32_t dim, const TokenSample& tokens, const TokenSample& part,
                         uint32_t count, const Deadline& deadline, bool directions) {
  const int8_t* const sample = tokens.vectors.data();
  const uint32_t rows = tokens.rows;
  Fit fit(kernel, dim, deadline);
  count = std::min(count, rows);
  const uint32_t wanted = std::max(1u, uint32_t(std::bit_floor(uint32_t(std::sqrt(double(count))))));
  std::vector<uint32_t> nearest;
  const TokenSample groups = fit.centres(part.vectors.data(), part.rows, wanted, nearest);
  std::vector<float> similarities(rows);
  nearest.resize(rows);
  nearestOf(kernel, dim, sample, rows, chunkOf(groups), similarities.data(), nearest.data());
  std::vector<std::vector<uint32_t>> membersOf(wanted);
  for (uint32_t r = 0; r < rows; ++r) membersOf[nearest[r]].push_back(r);

  CodebookData data;
  data.dim = dim;
  data.groupStarts.push_back(0);
  std::vector<int8_t> members;
  uint64_t before = 0;
  for (uint32_t g = 0; g < wanted; ++g) {
    const auto size = uint32_t(membersOf[g].size());
    // Each group gets centroids in proportion to its rows. Rounding is such that all groups together get `count`. A
    // group that gets none is left out, and its rows find a centroid in other groups.
    const auto share = uint32_t((before + size) * count / rows - before * count / rows);
    before += size;
    if (share == 0) continue;
    members.resize(size_t(size) * dim + readPaddingBytes);
    for (uint32_t i = 0; i < size; ++i)
      std::copy_n(sample + size_t(membersOf[g][i]) * dim, dim, members.begin() + long(size_t(i) * dim));
    const TokenSample centres = fit.centres(members.data(), size, share, nearest);
    data.centroids.insert(data.centroids.end(), centres.vectors.begin(),
                          centres.vectors.end() - long(readPaddingBytes));
    data.scales.insert(data.scales.end(), centres.scales.begin(), centres.scales.end() - long(readPaddingBytes));
    data.groupStarts.push_back(data.groupStarts.back() + share);
    data.groups.insert(data.groups.end(), groups.vectors.begin() + long(size_t(g) * dim),
                       groups.vectors.begin() + long(size_t(g + 1) * dim));
    data.groupScales.push_back(groups.scales[g]);
  }
  for (auto* vectors : {&data.centroids, &data.groups}) vectors->resize(vectors->size() + readPaddingBytes);
  for (auto* scales : {&data.scales, &data.groupScales}) scales->resize(scales->size() + readPaddingBytes);
  fitCodewords(kernel, data, part, deadline, directions);
  return data;
}

}  // namespace maxsimd
