// Writes the footer of a sealed segment (format.h) and checks it when a segment is opened.
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
  /// Distinguishes different contents under the same segment id.
  uint32_t crc;
  std::vector<RecordEntry> records;
  /// A view into `body`.
  std::span<const ChunkEntry> chunks;
};

/// The footer of a file of `bytes` bytes, or `nullopt` if the file is not sealed. Throws `corrupt` for a damaged footer
/// and `unsupported_version` for one of another format.
std::optional<Footer> readFooter(const File& file, uint64_t bytes, RowShape shape);

}  // namespace maxsimd
