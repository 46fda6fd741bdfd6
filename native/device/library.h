// The interface of a library that scores on a device. Another compiler builds it, apart from the addon, and the addon
// loads it on request. So it consists of plain data and C functions, without types of the device.
//
// Every call that can fail returns null, or a message that stays valid for ever. One thread at a time calls for a
// device. Calls that create, fill and destroy matrices may run beside a search.
#pragma once

#include <cstdint>

namespace maxsimd {

/// Any change to this file gets a new number.
inline constexpr uint32_t deviceLibraryVersion = 3;
inline constexpr const char* deviceLibrarySymbol = "maxsimdDeviceLibrary";

/// `deviceQueriesMost`: queries of one call at most. `deviceTokens`: tokens are multiplied in blocks of this many, so a
/// query costs as much as its tokens rounded up to a multiple. Each query of a call costs as much as the longest of
/// them.
inline constexpr uint32_t deviceQueriesMost = 8;
inline constexpr uint32_t deviceTokens = 32;

struct DeviceInfo {
  char name[128];
  uint64_t memoryBytes;
};

/// At least one chunk. Rows are as they are stored (kernels/rows.h).
struct MatrixShape {
  uint64_t rows;
  uint32_t chunks;
  uint32_t dim;
  uint32_t bits;
};

struct DeviceQuery {
  uint32_t dim;
  /// int8 [tokens x dim]
  const int8_t* vectors;
  /// f32 [tokens]
  const float* scales;
  const float* offsets;
  uint32_t tokens;
  /// How many of the best chunks are wanted.
  uint32_t k;
};

/// The part of a matrix that is scored.
struct DeviceScan {
  void* matrix;
  /// One bit a chunk, the first chunk in the lowest bit; 0 behind the last.
  const uint64_t* admitted;
};

struct DeviceScored {
  /// Position among the scans.
  uint32_t scan;
  uint32_t chunk;
  float score;
};

/// The answer to one query.
struct DeviceAnswer {
  /// [room]
  DeviceScored* scored;
  uint32_t room;
  /// How many were found, including those without room.
  uint32_t found;
};

struct DeviceLibrary {
  uint32_t version;
  const char* (*open)(uint32_t ordinal, DeviceInfo* info, void** device);
  void (*close)(void* device);
  /// Device memory that a matrix takes.
  uint64_t (*matrixBytes)(const MatrixShape* shape);
  /// Makes an empty matrix. `starts` [chunks + 1]: rows before each chunk. Each chunk has at least one row.
  const char* (*create)(void* device, const MatrixShape* shape, const uint64_t* starts, void** matrix);
  /// Copies `vectors`, rows one behind another, and `scales` f16 [rows] to rows `firstRow` and on.
  const char* (*fill)(void* matrix, uint64_t firstRow, uint64_t rows, const int8_t* vectors, const uint16_t* scales);
  void (*destroy)(void* matrix);
  /// Finds, for each query, the best `k` admitted chunks of all `scanCount` matrices together, and all chunks that tie
  /// with the last of them, in any order. If fewer are admitted, all of them. The matrices have one dim and one number of
  /// bits. Scores are those of kernels/contract.h, to the last bit.
  const char* (*best)(void* device, const DeviceQuery* queries, DeviceAnswer* answers, uint32_t queryCount,
                      const DeviceScan* scans, uint32_t scanCount);
};

using DeviceLibraryEntry = const DeviceLibrary* (*)();

}  // namespace maxsimd
