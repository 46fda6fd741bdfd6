// What a library gives the engine that scores on a device. It is made by another compiler, apart from the addon, and loaded when
// it is asked for: plain data and calls of C, nothing of a device's own types.
//
// Every call that can fail returns null, or what failed in words that last for ever. Calls for one device come from one thread at a time,
// but for those that make, fill and destroy matrices: those may come beside a search.
#pragma once

#include <cstdint>

namespace maxsimd {

/// A change of anything here makes it another number.
inline constexpr uint32_t deviceLibraryVersion = 2;
inline constexpr const char* deviceLibrarySymbol = "maxsimdDeviceLibrary";

/// Queries of a call, at most, and tokens that are multiplied at once: a query costs what those of the next multiple do, and queries of one
/// call cost what the longest of them does.
inline constexpr uint32_t deviceQueriesMost = 8;
inline constexpr uint32_t deviceTokens = 32;

struct DeviceInfo {
  char name[128];
  uint64_t memoryBytes;
};

/// At least one chunk.
struct MatrixShape {
  uint64_t rows;
  uint32_t chunks;
  uint32_t dim;
};

struct DeviceQuery {
  uint32_t dim;
  /// int8 [tokens x dim]
  const int8_t* vectors;
  /// f32 [tokens]
  const float* scales;
  const float* offsets;
  uint32_t tokens;
  /// How many of the best are wanted.
  uint32_t k;
};

/// What is scored of a matrix.
struct DeviceScan {
  void* matrix;
  /// A bit a chunk, the first in the lowest place; 0 behind the last.
  const uint64_t* admitted;
};

struct DeviceScored {
  /// Position among the scans.
  uint32_t scan;
  uint32_t chunk;
  float score;
};

/// What is found for one query.
struct DeviceAnswer {
  /// [room]
  DeviceScored* scored;
  uint32_t room;
  /// How many there are, those too that there is no room for.
  uint32_t found;
};

struct DeviceLibrary {
  uint32_t version;
  const char* (*open)(uint32_t ordinal, DeviceInfo* info, void** device);
  void (*close)(void* device);
  /// Device memory that a matrix takes.
  uint64_t (*matrixBytes)(const MatrixShape* shape);
  /// Nothing is in it yet. `starts` [chunks + 1]: rows before each chunk, of which each has one at least.
  const char* (*create)(void* device, const MatrixShape* shape, const uint64_t* starts, void** matrix);
  /// Copies int8 [rows x dim] and f16 [rows].
  const char* (*fill)(void* matrix, uint64_t firstRow, uint64_t rows, const int8_t* vectors, const uint16_t* scales);
  void (*destroy)(void* matrix);
  /// For each query the best `k` of the admitted chunks of `scanCount` matrices of one dim together, and all that tie with the last of them,
  /// in any order; all that are admitted if they are fewer. Scores are those of kernels/contract.h, to the last bit.
  const char* (*best)(void* device, const DeviceQuery* queries, DeviceAnswer* answers, uint32_t queryCount,
                      const DeviceScan* scans, uint32_t scanCount);
};

using DeviceLibraryEntry = const DeviceLibrary* (*)();

}  // namespace maxsimd
