#include "codes/codebook.h"

#include "codes/search_tuning.h"
#include "kernels/half.h"
#include "runtime/query.h"
#include "files/crc32c.h"
#include "files/error.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace maxsimd {
namespace {

/// Number of token vectors that are packed as one query. Kernels compare a query with many rows, and a block of token
/// vectors can take the place of the query.
constexpr uint32_t blockVectors = 64;

/// Whether a value from a file can be used. The bound is far above the components of residuals of unit vectors, and low
/// enough that sums of products stay finite.
bool isUsable(float value) { return std::abs(value) <= 65504.0f; }

bool usable(const CodebookData& data) {
  if (data.groupStarts.size() < 2 || data.groupStarts.front() != 0) return false;
  if (data.count() < 1 || data.count() > centroidsMax) return false;
  if (!std::is_sorted(data.groupStarts.begin(), data.groupStarts.end(), std::less_equal<>())) return false;
  const auto fits = [&](const std::vector<int8_t>& vectors, const std::vector<uint16_t>& scales, size_t count) {
    return vectors.size() == count * data.dim + readPaddingBytes && scales.size() == count + readPaddingBytes &&
           std::all_of(scales.begin(), scales.begin() + long(count),
                       [](uint16_t scale) { return halfIsFinite(scale) && halfToFloat(scale) > 0.0f; });
  };
  if (data.directions.empty() != data.directionScales.empty()) return false;
  if (!data.directions.empty() && !fits(data.directions, data.directionScales, data.components())) return false;
  if (!isUsable(data.share) || data.codewords.size() != size_t(subspaces) * codewords * data.subspaceDim())
    return false;
  if (!std::all_of(data.codewords.begin(), data.codewords.end(), isUsable)) return false;
  return fits(data.centroids, data.scales, data.count()) && fits(data.groups, data.groupScales, data.groupCount());
}

uint64_t contentHash(const CodebookData& data) {
  const auto add = [](uint32_t crc, const auto& values) {
    return crc32c(values.data(), values.size() * sizeof values[0], crc);
  };
  const uint32_t low = add(add(0, data.centroids), data.scales);
  const uint32_t groups = add(add(add(0, data.groups), data.groupScales), data.groupStarts);
  const uint32_t fitted = crc32c(&data.fittedRows, sizeof data.fittedRows, groups);
  // Without directions this is the hash of earlier releases.
  const uint32_t directions = add(add(fitted, data.directions), data.directionScales);
  const uint32_t high = add(crc32c(&data.share, sizeof data.share, directions), data.codewords);
  return uint64_t(high) << 32 | low;
}

}  // namespace

void nearestOf(const Kernel& kernel, uint32_t dim, const int8_t* vectors, uint32_t count, const Chunk& among,
               float* similarities, uint32_t* rows) {
  float blockSimilarities[blockVectors];
  uint32_t blockRows[blockVectors];
  for (uint32_t first = 0; first < count; first += blockVectors) {
    const uint32_t block = std::min(blockVectors, count - first);
    const Query query(kernel, vectors + size_t(first) * dim, block, dim);
    kernel.best(query.packed(), among, blockSimilarities, blockRows);
    std::copy_n(blockSimilarities, block, similarities + first);
    std::copy_n(blockRows, block, rows + first);
  }
}

void remaindersOf(const CodebookData& data, const int8_t* vectors, const uint16_t* scales, const uint32_t* codes,
                  uint32_t rows, float* columns) {
  for (uint32_t r = 0; r < rows; ++r, vectors += data.dim) {
    const float scale = halfToFloat(scales[r]), share = data.share * halfToFloat(data.scales[codes[r]]);
    const int8_t* centroid = data.centroids.data() + size_t(codes[r]) * data.dim;
    for (size_t d = 0; d < data.dim; ++d)
      columns[d * rowLanes + r] = float(vectors[d]) * scale - float(centroid[d]) * share;
  }
}

void componentsOf(const Kernel& kernel, const CodebookData& data, const int8_t* vectors, const uint16_t* scales,
                  const uint32_t* codes, uint32_t rows, float* columns) {
  if (data.directions.empty()) {
    remaindersOf(data, vectors, scales, codes, rows, columns);
    return;
  }
  const uint32_t count = data.components();
  std::vector<int8_t> centroids(size_t(rows) * data.dim);
  for (size_t r = 0; r < rows; ++r)
    std::copy_n(data.centroids.data() + size_t(codes[r]) * data.dim, data.dim, centroids.data() + r * data.dim);
  const Chunk directions{data.directions.data(), data.directionScales.data(), count};
  const auto along = [&](const int8_t* of) {
    const Query query(kernel, of, rows, data.dim);
    std::vector<float> found(size_t(count) * query.packed().tokensPadded);
    kernel.similarities(query.packed(), directions, found.data());
    return found;
  };
  const std::vector<float> own = along(vectors), centroid = along(centroids.data());
  const size_t stride = own.size() / count;
  for (uint32_t r = 0; r < rows; ++r) {
    const float scale = halfToFloat(scales[r]), share = data.share * halfToFloat(data.scales[codes[r]]);
    for (size_t p = 0; p < count; ++p)
      columns[p * rowLanes + r] = own[p * stride + r] * scale - centroid[p * stride + r] * share;
  }
}

std::vector<float> halfSquaresOf(std::span<const float> words, uint32_t width) {
  std::vector<float> halfSquares(words.size() / width, 0.0f);
  for (size_t i = 0; i < words.size(); ++i) halfSquares[i / width] += words[i] * words[i] / 2;
  return halfSquares;
}

void nearestCodewords(const float* columns, const float* words, uint32_t width, const float* halfSquares,
                      uint32_t* nearest) {
  // Every supported processor has registers of 16 bytes.
  typedef float Floats __attribute__((vector_size(16)));
  typedef int32_t Integers __attribute__((vector_size(16)));
  for (uint32_t first = 0; first < rowLanes; first += 4) {
    Floats most = Floats{} - INFINITY;
    Integers where{};
    for (uint32_t w = 0; w < codewords; ++w) {
      Floats similarity = Floats{} - halfSquares[w];
      for (uint32_t d = 0; d < width; ++d) {
        Floats column;
        std::memcpy(&column, columns + size_t(d) * rowLanes + first, sizeof column);
        similarity += words[w * width + d] * column;
      }
      const Integers better = similarity > most;
      most = better ? similarity : most;
      where = better ? Integers{} + int32_t(w) : where;
    }
    std::memcpy(nearest + first, &where, sizeof where);
  }
}

Codebook::Codebook(const Kernel& kernel, CodebookData data, MemoryOwner owner)
    : kernel_(kernel), data_(std::move(data)), share_(owner), graph_(std::make_shared<Graph>(std::move(owner))) {
  if (!usable(data_)) throw Error(ErrorCode::corrupt, "damaged codebook");
  Memory::ofProcess().offer(ReclaimOrder::graphs, graph_);
  share_.resize(uint64_t(data_.count() + data_.groupCount()) * (data_.dim + sizeof(uint16_t)) +
                data_.directions.size());
  hash_ = contentHash(data_);
  halfSquares_ = halfSquaresOf(data_.codewords, data_.subspaceDim());
}

std::shared_ptr<const CentroidGraph> Codebook::buildGraph(const Deadline& deadline) const {
  const std::lock_guard lock(graph_->building);
  auto built = graph();
  if (built == nullptr) {
    built = std::make_shared<const CentroidGraph>(kernel_, data_, owner(), deadline);
    graph_->set(built);
  }
  return built;
}

std::shared_ptr<const CentroidGraph> Codebook::Graph::get() const {
  const std::lock_guard lock(mutex_);
  return built_;
}

void Codebook::Graph::set(std::shared_ptr<const CentroidGraph> built) {
  const std::lock_guard lock(mutex_);
  bytes_ = built == nullptr ? 0 : built->bytes();
  built_.swap(built);
}

void Codebook::encode(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint32_t* codes,
                      uint8_t* bytes) const {
  const uint32_t width = data_.subspaceDim();
  std::vector<float> columns(size_t(subspaces) * width * rowLanes, 0.0f);
  uint32_t even[rowLanes], odd[rowLanes];
  for (uint32_t first = 0; first < rows; first += rowLanes) {
    const uint32_t count = std::min(rowLanes, rows - first);
    componentsOf(kernel_, data_, vectors + size_t(first) * data_.dim, scales + first, codes + first, count,
                 columns.data());
    const auto nearest = [&](uint32_t m, uint32_t* found) {
      nearestCodewords(columns.data() + size_t(m) * width * rowLanes,
                       data_.codewords.data() + size_t(m) * codewords * width, width,
                       halfSquares_.data() + size_t(m) * codewords, found);
    };
    for (uint32_t b = 0; b < residualBytes; ++b) {
      nearest(2 * b, even);
      nearest(2 * b + 1, odd);
      for (uint32_t r = 0; r < count; ++r)
        bytes[size_t(first + r) * residualBytes + b] = uint8_t(even[r] | odd[r] << 4);
    }
  }
}

std::vector<std::vector<uint32_t>> Codebook::probing(const int8_t* vectors, uint32_t rows) const {
  const Chunk groups{data_.groups.data(), data_.groupScales.data(), data_.groupCount()};
  const uint32_t probes = std::min(SearchTuning::probedGroups, groups.rows);
  std::vector<std::vector<uint32_t>> probing(groups.rows);
  std::vector<float> similarities(size_t(groups.rows) * blockVectors);
  std::vector<std::pair<float, uint32_t>> nearest(groups.rows);
  for (uint32_t first = 0; first < rows; first += blockVectors) {
    const uint32_t count = std::min(blockVectors, rows - first);
    const Query query(kernel_, vectors + size_t(first) * data_.dim, count, data_.dim);
    kernel_.similarities(query.packed(), groups, similarities.data());
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t g = 0; g < groups.rows; ++g)
        nearest[g] = {-similarities[size_t(g) * query.packed().tokensPadded + i], g};
      std::partial_sort(nearest.begin(), nearest.begin() + probes, nearest.end());
      for (uint32_t p = 0; p < probes; ++p) probing[nearest[p].second].push_back(first + i);
    }
  }
  return probing;
}

void Codebook::assign(const int8_t* vectors, uint32_t rows, uint32_t* codes) const {
  const uint32_t dim = data_.dim;
  const auto members = probing(vectors, rows);
  std::vector<float> best(rows, -INFINITY), similarities;
  std::vector<int8_t> gathered;
  std::vector<uint32_t> nearest;
  for (uint32_t g = 0; g < data_.groupCount(); ++g) {
    const auto count = uint32_t(members[g].size()), start = data_.groupStarts[g];
    gathered.resize(size_t(count) * dim);
    for (size_t i = 0; i < count; ++i)
      std::copy_n(vectors + size_t(members[g][i]) * dim, dim, gathered.data() + i * dim);
    similarities.resize(count);
    nearest.resize(count);
    const Chunk centroids{data_.centroids.data() + size_t(start) * dim, data_.scales.data() + start,
                          data_.groupStarts[g + 1] - start};
    nearestOf(kernel_, dim, gathered.data(), count, centroids, similarities.data(), nearest.data());
    for (size_t i = 0; i < count; ++i) {
      const uint32_t row = members[g][i];
      // Groups are visited in the order of their centroids, so among equal centroids the lower one wins.
      if (similarities[i] <= best[row]) continue;
      best[row] = similarities[i];
      codes[row] = start + nearest[i];
    }
  }
}

double Codebook::share(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint32_t* codes) const {
  double dots = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    const int8_t* centroid = data_.centroids.data() + size_t(codes[r]) * data_.dim;
    const int32_t dot = kernel_.dot(vectors + size_t(r) * data_.dim, centroid, data_.dim);
    dots += double(dot) * double(halfToFloat(scales[r]) * halfToFloat(data_.scales[codes[r]]));
  }
  return dots / rows;
}

}  // namespace maxsimd
