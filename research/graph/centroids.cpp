#include "centroids.h"

#include "codes/nearest.h"
#include "kernels/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

namespace research {
namespace {

std::vector<char> bytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(path + " cannot be read");
  std::vector<char> bytes(size_t(file.tellg()));
  file.seekg(0);
  file.read(bytes.data(), long(bytes.size()));
  return bytes;
}

/// The direction of f32 [dim] as int8 with a scale.
void quantise(const float* direction, int8_t* vector, uint16_t* scale) {
  float largest = 0.0f;
  double square = 0.0;
  for (uint32_t d = 0; d < dim; ++d) {
    largest = std::max(largest, std::abs(direction[d]));
    square += double(direction[d]) * direction[d];
  }
  const float steps = largest > 0.0f ? 127.0f / largest : 0.0f;
  for (uint32_t d = 0; d < dim; ++d) vector[d] = int8_t(std::nearbyint(direction[d] * steps));
  *scale = maxsimd::floatToHalf(largest > 0.0f ? float(largest / 127.0 / std::sqrt(square)) : 1.0f / 127.0f);
}

/// K-means of i8 rows from evenly spaced ones: `count` centres at `vectors` and `scales`, `nearest` of each row.
void cluster(const maxsimd::Kernel& kernel, const int8_t* rows, uint32_t rowCount, uint32_t count, uint32_t rounds,
             int8_t* vectors, uint16_t* scales, std::vector<uint32_t>& nearest) {
  std::vector<float> direction(dim), sums, similarities(rowCount);
  std::vector<uint32_t> members;
  nearest.resize(rowCount);
  const auto restart = [&](uint32_t k, size_t row) {
    for (uint32_t d = 0; d < dim; ++d) direction[d] = float(rows[row * dim + d]);
    quantise(direction.data(), vectors + size_t(k) * dim, scales + k);
  };
  for (uint32_t k = 0; k < count; ++k) restart(k, uint64_t(k) * rowCount / count);
  for (uint32_t round = 0; round <= rounds; ++round) {
    maxsimd::nearestOf(kernel, dim, rows, rowCount, {vectors, scales, count}, similarities.data(), nearest.data());
    if (round == rounds) break;
    sums.assign(size_t(count) * dim, 0.0f);
    members.assign(count, 0);
    for (uint32_t r = 0; r < rowCount; ++r) {
      float* sum = sums.data() + size_t(nearest[r]) * dim;
      for (uint32_t d = 0; d < dim; ++d) sum[d] += float(rows[size_t(r) * dim + d]);
      ++members[nearest[r]];
    }
    for (uint32_t k = 0; k < count; ++k) {
      if (members[k] > 0) quantise(sums.data() + size_t(k) * dim, vectors + size_t(k) * dim, scales + k);
    }
  }
}

}  // namespace

Rows readTokenVectors(const std::vector<std::string>& directories) {
  Rows all;
  for (const std::string& directory : directories) {
    const auto bytes = bytesOf(directory + "/vectors.i8");
    all.vectors.insert(all.vectors.end(), bytes.begin(), bytes.end());
  }
  all.rows = uint32_t(all.vectors.size() / dim);
  all.vectors.resize(all.vectors.size() + maxsimd::readPaddingBytes);
  return all;
}

Rows readQueryTokens(const std::string& directory) {
  const auto bytes = bytesOf(directory + "/queries.f32");
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  Rows tokens;
  tokens.vectors.resize(values.size() + maxsimd::readPaddingBytes);
  uint16_t scale;
  for (size_t at = 0; at < values.size(); at += dim) {
    // Tokens of no weight are nowhere.
    if (std::all_of(values.begin() + long(at), values.begin() + long(at + dim), [](float v) { return v == 0.0f; }))
      continue;
    quantise(values.data() + at, tokens.vectors.data() + size_t(tokens.rows++) * dim, &scale);
  }
  return tokens;
}

Centroids fit(const maxsimd::Kernel& kernel, const Rows& all, uint32_t bits, uint32_t rounds) {
  constexpr uint32_t rowsPerGroup = 256;
  const uint32_t wanted = 1u << (bits / 2), count = 1u << bits;
  const uint32_t sampled = std::min(all.rows, wanted * rowsPerGroup);
  std::vector<int8_t> sample(size_t(sampled) * dim + maxsimd::readPaddingBytes);
  for (uint32_t r = 0; r < sampled; ++r) {
    const size_t from = uint64_t(r) * all.rows / sampled;
    std::copy_n(all.vectors.data() + from * dim, dim, sample.data() + size_t(r) * dim);
  }
  Centroids found;
  found.groups.resize(size_t(wanted) * dim + maxsimd::readPaddingBytes);
  found.groupScales.resize(wanted + maxsimd::readPaddingBytes);
  std::vector<uint32_t> nearest;
  cluster(kernel, sample.data(), sampled, wanted, rounds, found.groups.data(), found.groupScales.data(), nearest);

  std::vector<uint32_t> group(all.rows), starts(wanted + 1, 0);
  std::vector<float> similarities(all.rows);
  maxsimd::nearestOf(kernel, dim, all.vectors.data(), all.rows, {found.groups.data(), found.groupScales.data(), wanted},
                     similarities.data(), group.data());
  for (const uint32_t g : group) ++starts[g + 1];
  for (uint32_t g = 0; g < wanted; ++g) starts[g + 1] += starts[g];
  std::vector<uint32_t> order(all.rows), next(starts.begin(), starts.end() - 1);
  for (uint32_t r = 0; r < all.rows; ++r) order[next[group[r]]++] = r;
  std::vector<int8_t> members;
  for (uint32_t g = 0; g < wanted; ++g) {
    const uint32_t size = starts[g + 1] - starts[g];
    const uint64_t before = uint64_t(starts[g]) * count / all.rows, end = uint64_t(starts[g + 1]) * count / all.rows;
    const uint32_t own = std::clamp<uint32_t>(uint32_t(end - before), 1, std::max(1u, size));
    members.assign(size_t(std::max(1u, size)) * dim + maxsimd::readPaddingBytes, 0);
    for (uint32_t i = 0; i < size; ++i)
      std::copy_n(all.vectors.data() + size_t(order[starts[g] + i]) * dim, dim, members.data() + size_t(i) * dim);
    const uint32_t first = found.count();
    found.vectors.resize(size_t(first + own) * dim);
    found.scales.resize(first + own);
    cluster(kernel, members.data(), std::max(1u, size), own, rounds, found.vectors.data() + size_t(first) * dim,
            found.scales.data() + first, nearest);
    found.starts.push_back(first + own);
  }
  found.vectors.resize(found.vectors.size() + maxsimd::readPaddingBytes);
  found.scales.resize(found.scales.size() + maxsimd::readPaddingBytes);
  return found;
}

}  // namespace research
