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

/// Bytes of a padded row.
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
  for (uint64_t row = 0; row < rows; ++row)
    std::memcpy(&matrix.vectors.at((firstRow + row) * rowBytes), vectors + row * dim, dim);
  if (rows > 0) std::memcpy(&matrix.scales.at(firstRow + rows - 1) - (rows - 1), scales, rows * sizeof(uint16_t));
  return nullptr;
}

void destroy(void* matrix) {
  emulatedState.matrices -= 1;
  delete static_cast<Matrix*>(matrix);
}

const char* best(void*, const DeviceQuery* queries, DeviceAnswer* answers, uint32_t queryCount, const DeviceScan* scans,
                 uint32_t scanCount) {
  if (emulatedState.failing) return "the emulated device fails";
  std::this_thread::sleep_for(std::chrono::milliseconds(emulatedState.delayMs));
  emulatedState.mostQueries = std::max(emulatedState.mostQueries.load(), queryCount);
  uint32_t blocks = 0;
  for (uint32_t q = 0; q < queryCount; ++q)
    blocks = std::max(blocks, (queries[q].tokens + blockTokens - 1) / blockTokens);
  const size_t padded = size_t(blocks) * blockTokens;
  std::vector<int8_t> vectors(queryCount * padded * rowBytes);
  std::vector<float> scales(queryCount * padded), offsets(queryCount * padded);
  for (uint32_t q = 0; q < queryCount; ++q) {
    const DeviceQuery& query = queries[q];
    for (uint32_t token = 0; token < query.tokens; ++token) {
      const size_t at = q * padded + token;
      std::memcpy(&vectors[at * rowBytes], query.vectors + size_t(token) * query.dim, query.dim);
      scales[at] = query.scales[token];
      offsets[at] = query.offsets[token];
    }
  }
  std::vector<std::vector<DeviceScored>> all(queryCount);
  for (uint32_t scan = 0; scan < scanCount; ++scan) {
    const Matrix& matrix = *static_cast<const Matrix*>(scans[scan].matrix);
    const uint32_t chunks = matrix.shape.chunks;
    const Documents documents = {matrix.vectors.data(), matrix.scales.data(), matrix.starts.data(), chunks};
    const Queries packed = {vectors.data(), scales.data(), offsets.data(), queryCount, blocks, chunks};
    WarpProgram<EmulatedWarp, rowBytes / stepBytes, 1> program(documents, packed);
    std::vector<float> scores(size_t(queryCount) * chunks);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      if ((scans[scan].admitted[chunk / 64] >> chunk % 64 & 1) == 0) continue;
      program.begin(chunk);
      program.score(chunk, chunk, scores.data());
      for (uint32_t q = 0; q < queryCount; ++q) {
        all[q].push_back({scan, chunk, scores[size_t(q) * chunks + chunk] + (emulatedState.wrong ? 0.01f : 0.0f)});
      }
    }
  }
  for (uint32_t q = 0; q < queryCount; ++q) {
    std::vector<DeviceScored>& found = all[q];
    const uint32_t k = queries[q].k;
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    while (found.size() > k && found.back().score < found[k - 1].score) found.pop_back();
    answers[q].found = uint32_t(found.size());
    // The order is not defined.
    std::reverse(found.begin(), found.end());
    std::copy_n(found.begin(), std::min(answers[q].found, answers[q].room), answers[q].scored);
  }
  return nullptr;
}

constexpr DeviceLibrary library = {deviceLibraryVersion, open, [](void*) {}, matrixBytes, create, fill, destroy, best};

}  // namespace

const DeviceLibrary& emulatedLibrary() { return library; }

}  // namespace maxsimd::test
