// The CUDA implementation of library.h: exhaustive MaxSim and the best k.
#include "device/cuda/kernels.cuh"
#include "device/library.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace maxsimd::cuda {
namespace {

/// If a CUDA call fails, returns its message from the function around it.
#define ATTEMPT(call)                                               \
  do {                                                              \
    if (const cudaError_t result = (call); result != cudaSuccess) { \
      cudaGetLastError();                                           \
      return cudaGetErrorString(result);                            \
    }                                                               \
  } while (false)

struct DeviceMemory {
  static cudaError_t take(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
  void operator()(void* memory) const { cudaFree(memory); }
};

/// Page-locked memory of the host.
struct LockedMemory {
  static cudaError_t take(void** memory, size_t bytes) { return cudaMallocHost(memory, bytes); }
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

/// Room for `count` values.
template <class T, class Memory = DeviceMemory>
struct Buffer {
  std::unique_ptr<T, Memory> memory;
  size_t count = 0;

  T* get() const { return memory.get(); }

  /// Makes room for so many values. If it has to grow, what it held is lost.
  const char* reserve(size_t wanted) {
    if (wanted <= count) return nullptr;
    memory.reset();
    count = 0;
    void* fresh = nullptr;
    ATTEMPT(Memory::take(&fresh, wanted * sizeof(T)));
    memory.reset(static_cast<T*>(fresh));
    count = wanted;
    return nullptr;
  }
};

struct Device {
  uint32_t ordinal;
  uint32_t multiprocessors;
  cudaStream_t searching = nullptr;
  cudaStream_t filling = nullptr;
  // Buffers of a search.
  Buffer<uint8_t> request;
  Buffer<float> scores;
  Buffer<uint32_t> counts;
  Buffer<uint64_t> found;
  /// For the request and for the answer.
  Buffer<uint8_t, LockedMemory> host;

  ~Device() {
    if (searching != nullptr) cudaStreamDestroy(searching);
    if (filling != nullptr) cudaStreamDestroy(filling);
  }
};

RowShape rowsOf(const MatrixShape& shape) { return {shape.dim, shape.bits}; }

/// Bytes of a row on the device.
size_t rowBytesOf(const MatrixShape& shape) { return RowShape(paddedDim(rowsOf(shape)), shape.bits).bytes(); }

struct Matrix {
  Device* device;
  MatrixShape shape;
  Buffer<int8_t> vectors;
  Buffer<uint16_t> scales;
  Buffer<uint64_t> starts;
};

uint32_t wordsOf(const Matrix& matrix) { return (matrix.shape.chunks + 63) / 64; }

/// The bitmaps of all scans one after the other, each from a word of 64 bits on.
uint32_t wordsOf(const DeviceScan* scans, uint32_t count) {
  uint32_t words = 0;
  for (uint32_t scan = 0; scan < count; ++scan) words += wordsOf(*static_cast<const Matrix*>(scans[scan].matrix));
  return words;
}

/// Offsets in the one buffer that carries all queries to the device.
struct RequestLayout {
  /// Of the documents.
  RowShape rows;
  /// A query token takes as many bytes as the documents have padded dimensions.
  uint32_t dim, queries;
  /// Blocks of tokens of every query: as many as the longest needs.
  uint32_t blocks = 0;
  size_t scales, offsets, biases, admitted, selections, places, bytes;

  RequestLayout(RowShape documents, const DeviceQuery* asked, uint32_t count, uint32_t words)
      : rows(documents), dim(paddedDim(documents)), queries(count) {
    for (uint32_t query = 0; query < count; ++query)
      blocks = std::max(blocks, (asked[query].tokens + blockTokens - 1) / blockTokens);
    const size_t padded = queries * tokens();
    scales = padded * dim;
    offsets = scales + padded * sizeof(float);
    biases = offsets + padded * sizeof(float);
    admitted = biases + padded * sizeof(int32_t);
    selections = admitted + words * sizeof(uint64_t);
    places = selections + queries * sizeof(Selection);
    bytes = places + queries * sizeof(uint32_t);
  }

  /// Tokens of each query, padded.
  size_t tokens() const { return size_t(blocks) * blockTokens; }
};

void layOut(const RequestLayout& layout, const DeviceQuery* queries, const DeviceScan* scans, uint32_t count,
            uint8_t* to) {
  std::memset(to, 0, layout.admitted);
  for (uint32_t at = 0; at < layout.queries; ++at) {
    const DeviceQuery& query = queries[at];
    const size_t first = at * layout.tokens();
    for (uint32_t token = 0; token < query.tokens; ++token) {
      const int8_t* const vector = query.vectors + size_t(token) * query.dim;
      const int32_t bias = biasOf(vector, query.dim, layout.rows.bits);
      std::memcpy(to + (first + token) * layout.dim, vector, query.dim);
      std::memcpy(to + layout.biases + (first + token) * sizeof bias, &bias, sizeof bias);
    }
    std::memcpy(to + layout.scales + first * sizeof(float), query.scales, query.tokens * sizeof(float));
    std::memcpy(to + layout.offsets + first * sizeof(float), query.offsets, query.tokens * sizeof(float));
    const Selection selection = {0, query.k};
    std::memcpy(to + layout.selections + at * sizeof selection, &selection, sizeof selection);
  }
  uint8_t* admitted = to + layout.admitted;
  for (uint32_t scan = 0; scan < count; ++scan) {
    const size_t bytes = wordsOf(*static_cast<const Matrix*>(scans[scan].matrix)) * sizeof(uint64_t);
    std::memcpy(admitted, scans[scan].admitted, bytes);
    admitted += bytes;
  }
  std::memset(to + layout.places, 0, layout.queries * sizeof(uint32_t));
}

const char* reserve(Device& device, const RequestLayout& layout, uint32_t chunks, uint32_t room) {
  const size_t found = size_t(layout.queries) * room;
  if (const char* failure = device.host.reserve(std::max(layout.bytes, found * sizeof(uint64_t)))) return failure;
  if (const char* failure = device.request.reserve(layout.bytes)) return failure;
  if (const char* failure = device.scores.reserve(size_t(layout.queries) * chunks)) return failure;
  return device.found.reserve(found);
}

const char* openDevice(uint32_t ordinal, DeviceInfo* info, void** opened) {
  int devices = 0;
  ATTEMPT(cudaGetDeviceCount(&devices));
  if (ordinal >= uint32_t(devices)) return "there is no device of this number";
  ATTEMPT(cudaSetDevice(int(ordinal)));
  cudaDeviceProp properties;
  ATTEMPT(cudaGetDeviceProperties(&properties, int(ordinal)));
  if (properties.major < 8) return "compute capability 8.0 or later is needed";
  auto device = std::make_unique<Device>();
  device->ordinal = ordinal;
  device->multiprocessors = uint32_t(properties.multiProcessorCount);
  ATTEMPT(cudaStreamCreateWithFlags(&device->searching, cudaStreamNonBlocking));
  ATTEMPT(cudaStreamCreateWithFlags(&device->filling, cudaStreamNonBlocking));
  if (const char* failure = device->counts.reserve(digits * deviceQueriesMost)) return failure;
  std::strncpy(info->name, properties.name, sizeof info->name - 1);
  info->name[sizeof info->name - 1] = 0;
  info->memoryBytes = properties.totalGlobalMem;
  *opened = device.release();
  return nullptr;
}

void closeDevice(void* device) { delete static_cast<Device*>(device); }

uint64_t matrixBytes(const MatrixShape* shape) {
  return shape->rows * (rowBytesOf(*shape) + sizeof(uint16_t)) + (shape->chunks + uint64_t(1)) * sizeof(uint64_t);
}

const char* createMatrix(void* of, const MatrixShape* shape, const uint64_t* starts, void** created) {
  Device& device = *static_cast<Device*>(of);
  ATTEMPT(cudaSetDevice(int(device.ordinal)));
  auto matrix = std::make_unique<Matrix>(Matrix{&device, *shape, {}, {}, {}});
  const size_t rowBytes = rowBytesOf(*shape);
  if (const char* failure = matrix->vectors.reserve(shape->rows * rowBytes)) return failure;
  if (const char* failure = matrix->scales.reserve(shape->rows)) return failure;
  if (const char* failure = matrix->starts.reserve(size_t(shape->chunks) + 1)) return failure;
  const cudaStream_t stream = device.filling;
  if (rowBytes != rowsOf(*shape).bytes())
    ATTEMPT(cudaMemsetAsync(matrix->vectors.get(), 0, shape->rows * rowBytes, stream));
  ATTEMPT(cudaMemcpyAsync(matrix->starts.get(), starts, (size_t(shape->chunks) + 1) * sizeof(uint64_t),
                          cudaMemcpyHostToDevice, stream));
  ATTEMPT(cudaStreamSynchronize(stream));
  *created = matrix.release();
  return nullptr;
}

const char* fillMatrix(void* of, uint64_t firstRow, uint64_t rows, const int8_t* vectors, const uint16_t* scales) {
  Matrix& matrix = *static_cast<Matrix*>(of);
  ATTEMPT(cudaSetDevice(int(matrix.device->ordinal)));
  const cudaStream_t stream = matrix.device->filling;
  const size_t there = rowBytesOf(matrix.shape), here = rowsOf(matrix.shape).bytes();
  ATTEMPT(cudaMemcpy2DAsync(matrix.vectors.get() + firstRow * there, there, vectors, here, here, rows,
                            cudaMemcpyHostToDevice, stream));
  ATTEMPT(
      cudaMemcpyAsync(matrix.scales.get() + firstRow, scales, rows * sizeof(uint16_t), cudaMemcpyHostToDevice, stream));
  ATTEMPT(cudaStreamSynchronize(stream));
  return nullptr;
}

void destroyMatrix(void* of) {
  auto* matrix = static_cast<Matrix*>(of);
  cudaSetDevice(int(matrix->device->ordinal));
  delete matrix;
}

const char* best(void* of, const DeviceQuery* asked, DeviceAnswer* answers, uint32_t queryCount,
                 const DeviceScan* scans, uint32_t scanCount) {
  Device& device = *static_cast<Device*>(of);
  ATTEMPT(cudaSetDevice(int(device.ordinal)));
  const uint32_t words = wordsOf(scans, scanCount), chunks = words * 64;
  const RowShape rows = rowsOf(static_cast<const Matrix*>(scans->matrix)->shape);
  const RequestLayout layout(rows, asked, queryCount, words);
  uint32_t room = 0;
  for (uint32_t query = 0; query < queryCount; ++query) room = std::max(room, answers[query].room);
  if (const char* failure = reserve(device, layout, chunks, room)) return failure;
  layOut(layout, asked, scans, scanCount, device.host.get());
  const cudaStream_t stream = device.searching;
  uint8_t* const there = device.request.get();
  ATTEMPT(cudaMemcpyAsync(there, device.host.get(), layout.bytes, cudaMemcpyHostToDevice, stream));
  // A search that failed may have left counts.
  ATTEMPT(cudaMemsetAsync(device.counts.get(), 0, queryCount * digits * sizeof(uint32_t), stream));

  const Queries queries = {reinterpret_cast<const int8_t*>(there),
                           reinterpret_cast<const float*>(there + layout.scales),
                           reinterpret_cast<const float*>(there + layout.offsets),
                           reinterpret_cast<const int32_t*>(there + layout.biases),
                           queryCount,
                           layout.blocks,
                           chunks};
  const auto* const admitted = reinterpret_cast<const uint32_t*>(there + layout.admitted);
  const ScoreKernel kernel = kernelFor(rows, queryCount * layout.blocks);
  int resident = 0;
  ATTEMPT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threadsPerBlock, 0));
  std::vector<uint32_t> firsts;
  uint32_t first = 0;
  for (uint32_t scan = 0; scan < scanCount; ++scan) {
    const Matrix& matrix = *static_cast<const Matrix*>(scans[scan].matrix);
    const Documents documents = {matrix.vectors.get(), matrix.scales.get(), matrix.starts.get(), matrix.shape.chunks};
    const uint32_t grid = std::min(uint32_t(resident) * device.multiprocessors,
                                   (matrix.shape.chunks + warpsPerBlock - 1) / warpsPerBlock);
    kernel<<<grid, threadsPerBlock, 0, stream>>>(documents, queries, admitted + first / 32,
                                                 device.scores.get() + first);
    firsts.push_back(first);
    first += wordsOf(matrix) * 64;
  }

  const Scored all = {device.scores.get(), admitted, chunks};
  auto* const selections = reinterpret_cast<Selection*>(there + layout.selections);
  auto* const places = reinterpret_cast<uint32_t*>(there + layout.places);
  const dim3 blocks(std::min(device.multiprocessors * 4, (chunks + choosers - 1) / choosers), queryCount),
      one(1, queryCount);
  for (uint32_t pass = 0; pass < passes; ++pass) {
    countDigits<<<blocks, choosers, 0, stream>>>(all, selections, pass, device.counts.get());
    chooseDigit<<<one, choosers, 0, stream>>>(selections, device.counts.get(), pass);
  }
  gather<<<blocks, choosers, 0, stream>>>(all, selections, room, device.found.get(), places);
  ATTEMPT(cudaGetLastError());
  // The host's buffer is free again: the queries were copied before anything was scored.
  auto* const keys = reinterpret_cast<uint64_t*>(device.host.get());
  ATTEMPT(cudaMemcpyAsync(keys, device.found.get(), size_t(queryCount) * room * sizeof(uint64_t),
                          cudaMemcpyDeviceToHost, stream));
  uint32_t found[deviceQueriesMost];
  ATTEMPT(cudaMemcpyAsync(found, places, queryCount * sizeof *found, cudaMemcpyDeviceToHost, stream));
  ATTEMPT(cudaStreamSynchronize(stream));
  for (uint32_t query = 0; query < queryCount; ++query) {
    DeviceAnswer& answer = answers[query];
    answer.found = found[query];
    for (uint32_t at = 0; at < std::min(answer.found, answer.room); ++at) {
      const uint64_t key = keys[size_t(query) * room + at];
      const auto chunk = uint32_t(key);
      const auto scan = uint32_t(std::upper_bound(firsts.begin(), firsts.end(), chunk) - firsts.begin()) - 1;
      answer.scored[at] = {scan, chunk - firsts[scan], scoreOf(uint32_t(key >> 32))};
    }
  }
  return nullptr;
}

constexpr DeviceLibrary library = {deviceLibraryVersion, openDevice, closeDevice,   matrixBytes,
                                   createMatrix,         fillMatrix, destroyMatrix, best};

}  // namespace
}  // namespace maxsimd::cuda

extern "C" __attribute__((visibility("default"))) const maxsimd::DeviceLibrary* maxsimdDeviceLibrary() {
  return &maxsimd::cuda::library;
}
