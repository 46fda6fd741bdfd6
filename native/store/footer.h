// The footer of a sealed segment (format.h): writing it, and checking it at open.
#pragma once

#include "files/file.h"
#include "store/format.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace maxsimd {

struct FooterBytes {
  /// The directory, a multiple of 64 long.
  std::vector<uint8_t> body;
  FileTrailer trailer;
};

struct Directory {
  std::vector<RecordEntry> records;
  std::vector<ChunkEntry> chunks;
  uint64_t rows = 0;
};

FooterBytes assembleFooter(uint64_t footerOffset, const Directory& directory);

struct Footer {
  std::vector<uint8_t> body;
  /// Where the records end.
  uint64_t offset;
  uint64_t rows;
  /// Tells contents of the same segment id apart.
  uint32_t crc;
  /// In `body`.
  std::span<const RecordEntry> records;
  std::span<const ChunkEntry> chunks;
};

/// The footer of a file of `bytes` bytes, or nothing if the file is not sealed. A damaged footer throws `corrupt`, one
/// of another format `unsupported_version`.
std::optional<Footer> readFooter(const File& file, uint64_t bytes, uint32_t dim);

}  // namespace maxsimd
