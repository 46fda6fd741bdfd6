#include "test/device/emulated_library.h"

#include "device/cuda/warp_program.h"
#include "test/device/emulated_warp.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace maxsimd::test {

EmulatedState emulatedState;

namespace {

using namespace maxsimd::cuda;

/// Rows are padded to so many bytes.
constexpr uint32_t rowBytes = 128;

struct Matrix {
  MatrixShape shape;
  std::vector<uint64_t> starts;
  std::vector<int8_t> vectors;
  std::vector<uint16_t> scales;
};

const char* open(uint32_t ordinal, DeviceInfo* info, void** device) {
  if (ordinal != 0) return "there is no device of this number";
  std::strcpy(info->name, "emulated");
  info->memoryBytes = emulatedState.memoryBytes;
  *device = &emulatedState;
  return nullptr;
}

uint64_t matrixBytes(const MatrixShape* shape) { return shape->rows * (rowBytes + sizeof(uint16_t)); }

const char* create(void*, const MatrixShape* shape, const uint64_t* starts, void** matrix) {
  if (shape->dim > rowBytes) return "rows are too long";
  emulatedState.matrices += 1;
  *matrix = new Matrix{*shape,
                       {starts, starts + shape->chunks + 1},
                       std::vector<int8_t>(shape->rows * rowBytes),
                       std::vector<uint16_t>(shape->rows)};
  return nullptr;
}

const char* fill(void* to, uint64_t firstRow, uint64_t rows, const int8_t* vectors, const uint16_t* scales) {
  Matrix& matrix = *static_cast<Matrix*>(to);
  const uint32_t dim = matrix.shape.dim;
  for (uint64_t row = 0; row < rows; ++row) std::memcpy(&matrix.vectors.at((firstRow + row) * rowBytes), vectors + row * dim, dim);
  if (rows > 0) std::memcpy(&matrix.scales.at(firstRow + rows - 1) - (rows - 1), scales, rows * sizeof(uint16_t));
  return nullptr;
}

void destroy(void* matrix) {
  emulatedState.matrices -= 1;
  delete static_cast<Matrix*>(matrix);
}

const char* best(void*, const DeviceQuery* query, const DeviceScan* scans, uint32_t count, uint32_t k, uint32_t room,
                 DeviceScored* scored, uint32_t* found) {
  if (emulatedState.failing) return "the emulated device fails";
  std::this_thread::sleep_for(std::chrono::milliseconds(emulatedState.delayMs));
  const uint32_t blocks = (query->tokens + blockTokens - 1) / blockTokens, padded = blocks * blockTokens;
  std::vector<int8_t> vectors(size_t(padded) * rowBytes);
  std::vector<float> scales(padded), offsets(padded);
  for (uint32_t token = 0; token < query->tokens; ++token) {
    std::memcpy(&vectors[size_t(token) * rowBytes], query->vectors + size_t(token) * query->dim, query->dim);
    scales[token] = query->scales[token];
    offsets[token] = query->offsets[token];
  }
  std::vector<DeviceScored> all;
  for (uint32_t scan = 0; scan < count; ++scan) {
    const Matrix& matrix = *static_cast<const Matrix*>(scans[scan].matrix);
    const Documents documents = {matrix.vectors.data(), matrix.scales.data(), matrix.starts.data(), matrix.shape.chunks};
    WarpProgram<EmulatedWarp, rowBytes / stepBytes, 1> program(documents, {vectors.data(), scales.data(), offsets.data(), 1, blocks});
    std::vector<float> scores(matrix.shape.chunks);
    for (uint32_t chunk = 0; chunk < matrix.shape.chunks; ++chunk) {
      if ((scans[scan].admitted[chunk / 64] >> chunk % 64 & 1) == 0) continue;
      program.begin(chunk);
      program.score(chunk, chunk, scores.data());
      all.push_back({scan, chunk, scores[chunk] + (emulatedState.wrong ? 0.01f : 0.0f)});
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  while (all.size() > k && all.back().score < all[k - 1].score) all.pop_back();
  *found = uint32_t(all.size());
  // In any order.
  std::reverse(all.begin(), all.end());
  std::copy_n(all.begin(), std::min<size_t>(all.size(), room), scored);
  return nullptr;
}

constexpr DeviceLibrary library = {deviceLibraryVersion, open, [](void*) {}, matrixBytes, create, fill, destroy, best};

}  // namespace

const DeviceLibrary& emulatedLibrary() { return library; }

}  // namespace maxsimd::test
