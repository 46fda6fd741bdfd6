#include "codes/codebook.h"

#include "codes/nearest.h"
#include "codes/search_tuning.h"
#include "kernels/half.h"
#include "files/crc32c.h"
#include "files/error.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace maxsimd {
namespace {

/// Token vectors sorted by group at a time: enough that a group's share fills blocks of the kernel.
constexpr uint32_t batchRows = 4096;

/// Far beyond what is left of unit vectors, and sums of products stay numbers.
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
  if (!isUsable(data.share) || data.codewords.size() != size_t(data.subspaces()) * codewords * data.subspaceDim())
    return false;
  if (!std::all_of(data.codewords.begin(), data.codewords.end(), isUsable))
    return false;
  return fits(data.centroids, data.scales, data.count()) && fits(data.groups, data.groupScales, data.groupCount());
}

uint64_t contentHash(const CodebookData& data) {
  const auto add = [](uint32_t crc, const auto& values) {
    return crc32c(values.data(), values.size() * sizeof values[0], crc);
  };
  const uint32_t low = add(add(0, data.centroids), data.scales);
  const uint32_t groups = add(add(add(0, data.groups), data.groupScales), data.groupStarts);
  const uint32_t fitted = crc32c(&data.fittedRows, sizeof data.fittedRows, groups);
  const uint32_t high = add(crc32c(&data.share, sizeof data.share, fitted), data.codewords);
  return uint64_t(high) << 32 | low;
}

}  // namespace

void nearestCodewords(const float* columns, const float* words, uint32_t width, const float* halfSquares,
                      uint32_t* nearest) {
  // Vectors that are compared are no wider than a register of every processor.
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

Codebook::Codebook(const Kernel& kernel, CodebookData data) : kernel_(kernel), data_(std::move(data)) {
  if (!usable(data_)) throw Error(ErrorCode::corrupt, "damaged codebook");
  share_.resize(uint64_t(data_.count() + data_.groupCount()) * (data_.dim + sizeof(uint16_t)));
  hash_ = contentHash(data_);
  const uint32_t width = data_.subspaceDim();
  halfSquares_.assign(size_t(data_.subspaces()) * codewords, 0.0f);
  for (size_t i = 0; i < data_.codewords.size(); ++i)
    halfSquares_[i / width] += data_.codewords[i] * data_.codewords[i] / 2;
}

const CentroidGraph& Codebook::buildGraph(const Deadline& deadline) const {
  const std::lock_guard lock(graph_->building);
  if (graph_->own == nullptr) graph_->own = std::make_unique<CentroidGraph>(kernel_, data_, deadline);
  graph_->built.store(graph_->own.get(), std::memory_order_release);
  return *graph_->own;
}

void Codebook::encode(const int8_t* vectors, const uint16_t* scales, uint32_t rows, const uint32_t* codes,
                      uint8_t* bytes) const {
  const uint32_t dim = data_.dim, width = data_.subspaceDim(), rowBytes = data_.rowBytes();
  // f32 [subspaces * width][rowLanes]: a token vector a lane.
  std::vector<float> columns(size_t(data_.subspaces()) * width * rowLanes, 0.0f);
  uint32_t even[rowLanes], odd[rowLanes];
  for (uint32_t first = 0; first < rows; first += rowLanes) {
    const uint32_t count = std::min(rowLanes, rows - first);
    for (uint32_t r = 0; r < count; ++r) {
      const float scale = halfToFloat(scales[first + r]);
      const float share = data_.share * halfToFloat(data_.scales[codes[first + r]]);
      const int8_t* vector = vectors + size_t(first + r) * dim;
      const int8_t* centroid = data_.centroids.data() + size_t(codes[first + r]) * dim;
      for (uint32_t d = 0; d < dim; ++d)
        columns[size_t(d) * rowLanes + r] = float(vector[d]) * scale - float(centroid[d]) * share;
    }
    const auto nearest = [&](uint32_t m, uint32_t* found) {
      nearestCodewords(columns.data() + size_t(m) * width * rowLanes,
                       data_.codewords.data() + size_t(m) * codewords * width, width,
                       halfSquares_.data() + size_t(m) * codewords, found);
    };
    for (uint32_t b = 0; b < rowBytes; ++b) {
      nearest(2 * b, even);
      nearest(2 * b + 1, odd);
      for (uint32_t r = 0; r < count; ++r) bytes[size_t(first + r) * rowBytes + b] = uint8_t(even[r] | odd[r] << 4);
    }
  }
}

void Codebook::assign(const int8_t* vectors, uint32_t rows, uint32_t* codes) const {
  const uint32_t dim = data_.dim;
  const uint32_t probes = std::min(SearchTuning::probedGroups, data_.groupCount());
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
        const uint32_t code = start + nearest[i];
        // Ties fall to the lower centroid, whatever the order of the groups.
        if (similarities[i] < best[row] || (similarities[i] == best[row] && code > codes[first + row])) continue;
        best[row] = similarities[i];
        codes[first + row] = code;
      }
    }
  }
}

double Codebook::share(const int8_t* vectors, const uint16_t* scales, uint32_t rows) const {
  std::vector<uint32_t> codes(rows);
  assign(vectors, rows, codes.data());
  double dots = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    const int8_t* centroid = data_.centroids.data() + size_t(codes[r]) * data_.dim;
    const int32_t dot = kernel_.dot(vectors + size_t(r) * data_.dim, centroid, data_.dim);
    dots += double(dot) * double(halfToFloat(scales[r]) * halfToFloat(data_.scales[codes[r]]));
  }
  return dots / rows;
}

}  // namespace maxsimd
