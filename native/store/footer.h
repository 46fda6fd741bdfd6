// The footer of a sealed segment (format.h): writing it, and checking it at open.
#pragma once

#include "store/format.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

struct FooterView {
  uint64_t rows;
  /// Tells contents of the same segment id apart.
  uint32_t crc;
  std::span<const RecordEntry> records;
  std::span<const ChunkEntry> chunks;
};

/// The footer of a file that is mapped whole, or nothing if the file is not sealed. A damaged footer throws
/// `corrupt`, one of a later format `unsupported_version`.
std::optional<FooterView> readFooter(const uint8_t* file, uint64_t bytes, uint32_t dim, const std::string& path);

}  // namespace maxsimd
