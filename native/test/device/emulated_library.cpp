#include "test/device/emulated_library.h"

#include "device/cuda/warp_program.h"
#include "test/device/emulated_warp.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace maxsimd::test {

EmulatedState emulatedState;

namespace {

using namespace maxsimd::cuda;

/// Dimensions of a row that is padded as short ones are, and of a row of the default model.
constexpr uint32_t shortDim = 128, longDim = 384;

uint32_t paddedDim(uint32_t dim) { return dim <= shortDim ? shortDim : longDim; }

RowShape rowsOf(const MatrixShape& shape) { return {shape.dim, shape.bits}; }
size_t rowBytesOf(const MatrixShape& shape) { return RowShape(paddedDim(shape.dim), shape.bits).bytes(); }

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

uint64_t matrixBytes(const MatrixShape* shape) { return shape->rows * (rowBytesOf(*shape) + sizeof(uint16_t)); }

const char* create(void*, const MatrixShape* shape, const uint64_t* starts, void** matrix) {
  if (shape->dim > longDim) return "rows are too long";
  emulatedState.matrices += 1;
  *matrix = new Matrix{*shape,
                       {starts, starts + shape->chunks + 1},
                       std::vector<int8_t>(shape->rows * rowBytesOf(*shape)),
                       std::vector<uint16_t>(shape->rows)};
  return nullptr;
}

const char* fill(void* to, uint64_t firstRow, uint64_t rows, const int8_t* vectors, const uint16_t* scales) {
  Matrix& matrix = *static_cast<Matrix*>(to);
  const size_t there = rowBytesOf(matrix.shape), here = rowsOf(matrix.shape).bytes();
  for (uint64_t row = 0; row < rows; ++row)
    std::memcpy(&matrix.vectors.at((firstRow + row) * there), vectors + row * here, here);
  if (rows > 0) std::memcpy(&matrix.scales.at(firstRow + rows - 1) - (rows - 1), scales, rows * sizeof(uint16_t));
  return nullptr;
}

void destroy(void* matrix) {
  emulatedState.matrices -= 1;
  delete static_cast<Matrix*>(matrix);
}

bool isAdmitted(const uint64_t* admitted, uint32_t chunk) { return (admitted[chunk / 64] >> chunk % 64 & 1) != 0; }

template <uint32_t Bits, uint32_t Dim>
void scoreAll(const Documents& documents, const Queries& queries, const uint64_t* admitted, float* scores) {
  WarpProgram<EmulatedWarp, Bits, Dim / stepDims(Bits), 1> program(documents, queries);
  for (uint32_t chunk = 0; chunk < documents.chunks; ++chunk) {
    if (!isAdmitted(admitted, chunk)) continue;
    program.begin(chunk);
    program.score(chunk, chunk, scores);
  }
}

/// [queries x chunks]; 0 for chunks that are not admitted.
std::vector<float> scoresOf(const Documents& documents, const Queries& queries, RowShape rows,
                            const uint64_t* admitted) {
  std::vector<float> scores(size_t(queries.queries) * documents.chunks);
  const bool isShort = rows.dim <= shortDim;
  const auto score = [&]<uint32_t Bits> {
    (isShort ? scoreAll<Bits, shortDim> : scoreAll<Bits, longDim>)(documents, queries, admitted, scores.data());
  };
  switch (rows.bits) {
    case 1: score.operator()<1>(); break;
    case 2: score.operator()<2>(); break;
    case 4: score.operator()<4>(); break;
    default: score.operator()<8>();
  }
  return scores;
}

const char* best(void*, const DeviceQuery* queries, DeviceAnswer* answers, uint32_t queryCount, const DeviceScan* scans,
                 uint32_t scanCount) {
  if (emulatedState.failing) return "the emulated device fails";
  ++emulatedState.searching;
  emulatedState.searching.notify_all();
  emulatedState.held.wait(true);
  --emulatedState.searching;
  emulatedState.mostQueries = std::max(emulatedState.mostQueries.load(), queryCount);
  uint32_t blocks = 0;
  for (uint32_t q = 0; q < queryCount; ++q)
    blocks = std::max(blocks, (queries[q].tokens + blockTokens - 1) / blockTokens);
  const size_t padded = size_t(blocks) * blockTokens;
  const RowShape rows = rowsOf(static_cast<const Matrix*>(scans->matrix)->shape);
  const uint32_t dim = paddedDim(rows.dim);
  std::vector<int8_t> vectors(queryCount * padded * dim);
  std::vector<float> scales(queryCount * padded), offsets(queryCount * padded);
  std::vector<int32_t> biases(queryCount * padded);
  for (uint32_t q = 0; q < queryCount; ++q) {
    const DeviceQuery& query = queries[q];
    for (uint32_t token = 0; token < query.tokens; ++token) {
      const size_t at = q * padded + token;
      std::memcpy(&vectors[at * dim], query.vectors + size_t(token) * query.dim, query.dim);
      biases[at] = biasOf(&vectors[at * dim], query.dim, rows.bits);
      scales[at] = query.scales[token];
      offsets[at] = query.offsets[token];
    }
  }
  std::vector<std::vector<DeviceScored>> all(queryCount);
  for (uint32_t scan = 0; scan < scanCount; ++scan) {
    const Matrix& matrix = *static_cast<const Matrix*>(scans[scan].matrix);
    const uint32_t chunks = matrix.shape.chunks;
    const Documents documents = {matrix.vectors.data(), matrix.scales.data(), matrix.starts.data(), chunks};
    const Queries packed = {vectors.data(), scales.data(), offsets.data(), biases.data(), queryCount, blocks, chunks};
    const std::vector<float> scores = scoresOf(documents, packed, rows, scans[scan].admitted);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      if (!isAdmitted(scans[scan].admitted, chunk)) continue;
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
