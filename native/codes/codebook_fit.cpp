#include "codes/codebook_fit.h"

#include "codes/nearest.h"
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

/// Unit vectors as f32 sums and their int8 form.
struct Centres {
  uint32_t dim;
  uint32_t count;
  std::vector<int8_t> vectors;
  std::vector<uint16_t> scales;

  Centres(uint32_t dimension, uint32_t number)
      : dim(dimension),
        count(number),
        vectors(size_t(number) * dimension + readPaddingBytes),
        scales(number + readPaddingBytes) {}

  /// Row `k` = the direction of `direction`, f32 [dim].
  void set(uint32_t k, std::span<const float> direction) {
    float largest = 0.0f;
    double square = 0.0;
    for (const float value : direction) {
      largest = std::max(largest, std::abs(value));
      square += double(value) * value;
    }
    const float steps = largest > 0.0f ? 127.0f / largest : 0.0f;
    for (uint32_t d = 0; d < dim; ++d) vectors[size_t(k) * dim + d] = int8_t(std::nearbyint(direction[d] * steps));
    scales[k] = floatToHalf(largest > 0.0f ? float(largest / 127.0 / std::sqrt(square)) : 1.0f / 127.0f);
  }

  Chunk chunk() const { return {vectors.data(), scales.data(), count}; }
};

class Fit {
 public:
  Fit(const Kernel& kernel, uint32_t dim, const Deadline& deadline) : kernel_(kernel), dim_(dim), deadline_(deadline) {}

  /// Spherical k-means of `rows` vectors; nearest[r] = the centre of row r at the end.
  Centres centres(const int8_t* vectors, uint32_t rows, uint32_t count, std::vector<uint32_t>& nearest) {
    Centres centres(dim_, count);
    std::vector<float> direction(dim_);
    std::vector<uint32_t> order(rows);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random_);
    const auto restart = [&](uint32_t k, uint32_t row) {
      for (uint32_t d = 0; d < dim_; ++d) direction[d] = float(vectors[size_t(row) * dim_ + d]);
      centres.set(k, direction);
    };
    for (uint32_t k = 0; k < count; ++k) restart(k, order[k % rows]);
    std::vector<float> similarities(rows), sums;
    std::vector<uint32_t> members;
    nearest.resize(rows);
    for (uint32_t round = 0; round < SearchTuning::fitRounds && count > 1; ++round) {
      deadline_.check();
      nearestOf(kernel_, dim_, vectors, rows, centres.chunk(), similarities.data(), nearest.data());
      sums.assign(size_t(count) * dim_, 0.0f);
      members.assign(count, 0);
      for (uint32_t r = 0; r < rows; ++r)
        add(vectors + size_t(r) * dim_, sums.data() + size_t(nearest[r]) * dim_), ++members[nearest[r]];
      for (uint32_t k = 0; k < count; ++k) {
        if (members[k] > 0)
          centres.set(k, {sums.data() + size_t(k) * dim_, dim_});
        else
          restart(k, order[random_() % rows]);
      }
    }
    nearestOf(kernel_, dim_, vectors, rows, centres.chunk(), similarities.data(), nearest.data());
    return centres;
  }

 private:
  /// A unit vector in the direction of `vector`: long and short token vectors weigh the same.
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

/// K-means of rows of `width` floats, starting from evenly spaced ones: f32 [16][width].
void fitSubspace(const std::vector<float>& rows, uint32_t width, float* found) {
  const size_t count = rows.size() / width;
  for (size_t w = 0; w < codewords; ++w)
    std::copy_n(rows.data() + w * count / codewords * width, width, found + w * width);
  std::vector<float> columns(size_t(width) * rowLanes), halfSquares, sums;
  std::vector<uint32_t> members;
  uint32_t nearest[rowLanes];
  for (uint32_t round = 0; round < SearchTuning::fitRounds; ++round) {
    halfSquares.assign(codewords, 0.0f);
    for (size_t i = 0; i < size_t(codewords) * width; ++i) halfSquares[i / width] += found[i] * found[i] / 2;
    sums.assign(size_t(codewords) * width, 0.0f);
    members.assign(codewords, 0);
    for (size_t first = 0; first < count; first += rowLanes) {
      const size_t taken = std::min<size_t>(rowLanes, count - first);
      for (size_t r = 0; r < taken; ++r) {
        for (size_t d = 0; d < width; ++d) columns[d * rowLanes + r] = rows[(first + r) * width + d];
      }
      nearestCodewords(columns.data(), found, width, halfSquares.data(), nearest);
      for (size_t r = 0; r < taken; ++r) {
        for (size_t d = 0; d < width; ++d) sums[nearest[r] * width + d] += rows[(first + r) * width + d];
        ++members[nearest[r]];
      }
    }
    for (size_t w = 0; w < codewords; ++w) {
      // A codeword nobody chose stays where it is.
      for (size_t d = 0; d < width && members[w] > 0; ++d)
        found[w * width + d] = sums[w * width + d] / float(members[w]);
    }
  }
}

/// At most `SearchTuning::fitRows` rows, evenly spaced.
TokenSample evenPart(const TokenSample& tokens, uint32_t dim) {
  TokenSample part;
  part.rows = std::min(tokens.rows, SearchTuning::fitRows);
  part.vectors.reserve(size_t(part.rows) * dim + readPaddingBytes);
  for (uint64_t i = 0; i < part.rows; ++i) {
    const size_t row = i * tokens.rows / part.rows;
    const auto vector = tokens.vectors.begin() + long(row * dim);
    part.vectors.insert(part.vectors.end(), vector, vector + dim);
    part.scales.push_back(tokens.scales[row]);
  }
  part.vectors.resize(part.vectors.size() + readPaddingBytes);
  return part;
}

/// `share` and `codewords` of a codebook whose centroids are there.
void fitCodewords(const Kernel& kernel, CodebookData& data, const TokenSample& tokens, const Deadline& deadline) {
  const uint32_t dim = data.dim, count = tokens.rows, subspaceDim = data.subspaceDim();
  data.codewords.assign(size_t(data.subspaces()) * codewords * subspaceDim, 0.0f);
  std::vector<uint32_t> codes(count);
  Codebook(kernel, data).assign(tokens.vectors.data(), count, codes.data());

  const size_t width = size_t(data.subspaces()) * subspaceDim;
  std::vector<float> own(count * width, 0.0f);
  double dots = 0;
  for (size_t r = 0; r < count; ++r) {
    const float scale = halfToFloat(tokens.scales[r]), unit = halfToFloat(data.scales[codes[r]]);
    for (uint32_t d = 0; d < dim; ++d) {
      own[r * width + d] = float(tokens.vectors[r * dim + d]) * scale;
      dots += double(own[r * width + d]) * double(float(data.centroids[size_t(codes[r]) * dim + d]) * unit);
    }
  }
  data.share = float(dots / count);
  std::vector<float> rows(count * subspaceDim);
  for (uint32_t m = 0; m < data.subspaces(); ++m) {
    deadline.check();
    for (size_t r = 0; r < count; ++r) {
      const float share = data.share * halfToFloat(data.scales[codes[r]]);
      for (uint32_t d = 0; d < subspaceDim; ++d) {
        const uint32_t component = m * subspaceDim + d;
        const float centroid =
            component < dim ? float(data.centroids[size_t(codes[r]) * dim + component]) * share : 0.0f;
        rows[r * subspaceDim + d] = own[r * width + component] - centroid;
      }
    }
    fitSubspace(rows, subspaceDim, data.codewords.data() + size_t(m) * codewords * subspaceDim);
  }
}

}  // namespace

CodebookData fitCodebook(const Kernel& kernel, uint32_t dim, const TokenSample& tokens, uint32_t count,
                         const Deadline& deadline) {
  const int8_t* const sample = tokens.vectors.data();
  const uint32_t rows = tokens.rows;
  Fit fit(kernel, dim, deadline);
  count = std::min(count, rows);
  const uint32_t wanted = std::max(1u, uint32_t(std::bit_floor(uint32_t(std::sqrt(double(count))))));
  std::vector<uint32_t> nearest;
  const TokenSample part = evenPart(tokens, dim);
  const Centres groups = fit.centres(part.vectors.data(), part.rows, wanted, nearest);
  std::vector<float> similarities(rows);
  nearest.resize(rows);
  nearestOf(kernel, dim, sample, rows, groups.chunk(), similarities.data(), nearest.data());
  std::vector<std::vector<uint32_t>> membersOf(wanted);
  for (uint32_t r = 0; r < rows; ++r) membersOf[nearest[r]].push_back(r);

  CodebookData data;
  data.dim = dim;
  data.groupStarts.push_back(0);
  std::vector<int8_t> members;
  uint64_t before = 0;
  for (uint32_t g = 0; g < wanted; ++g) {
    const auto size = uint32_t(membersOf[g].size());
    // In proportion to the group, and `count` in all. A group without a centroid leaves its rows to the others.
    const auto share = uint32_t((before + size) * count / rows - before * count / rows);
    before += size;
    if (share == 0) continue;
    members.resize(size_t(size) * dim + readPaddingBytes);
    for (uint32_t i = 0; i < size; ++i)
      std::copy_n(sample + size_t(membersOf[g][i]) * dim, dim, members.begin() + long(size_t(i) * dim));
    const Centres centres = fit.centres(members.data(), size, share, nearest);
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
  fitCodewords(kernel, data, part, deadline);
  return data;
}

}  // namespace maxsimd
