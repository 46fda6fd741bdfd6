// A document version as the bytes of its record (format.h).
#pragma once

#include "store/format.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace maxsimd {

/// The content of a new record.
struct RecordParts {
  uint64_t versionId = 0;
  std::vector<uint32_t> chunkRows;
  /// `rows` stored rows (kernels/rows.h), followed by `readPaddingBytes` of padding.
  std::vector<int8_t> vectors;
  /// f16 [rows], likewise padded.
  std::vector<uint16_t> scales;
  std::vector<uint8_t> terms;
  /// One a chunk, or none if they are unknown. `places` has the bytes that they state.
  std::vector<ChunkRange> ranges;
  std::vector<uint8_t> places;

  uint32_t rows() const;
};

/// The place of a chunk in its document's text, and the packed places of its rows.
struct ChunkPlace {
  uint32_t start;
  uint32_t end;
  std::span<const uint8_t> rows;
};

/// The bytes of a whole record, with both checksums set.
std::vector<uint8_t> assembleRecord(const RecordParts& parts, RowShape shape);

/// The sections of a record in memory or in a mapping.
struct RecordView {
  const uint8_t* bytes;
  RecordLayout layout;

  const RecordHeader& header() const { return *reinterpret_cast<const RecordHeader*>(bytes); }
  const uint32_t* chunkRows() const { return reinterpret_cast<const uint32_t*>(bytes + layout.chunkRows); }
  const uint8_t* terms() const { return bytes + layout.terms; }
  const int8_t* vectors() const { return reinterpret_cast<const int8_t*>(bytes + layout.vectors); }
  bool ranged() const { return header().rangeBytes >= header().chunks * sizeof(ChunkRange); }
  std::span<const ChunkRange> ranges() const {
    return {reinterpret_cast<const ChunkRange*>(bytes + layout.ranges), ranged() ? header().chunks : 0};
  }
  std::span<const uint8_t> places() const {
    return {bytes + layout.ranges + ranges().size_bytes(), header().rangeBytes - ranges().size_bytes()};
  }
  /// `nullopt` if it is unknown. `chunk` is counted among the record's. Trusts the header, but not the ranges.
  std::optional<ChunkPlace> placeOf(uint32_t chunk) const;
  const uint16_t* scales() const { return reinterpret_cast<const uint16_t*>(bytes + layout.scales); }

  /// Whether the header and the sections before the vectors match their checksum.
  bool metaIntact() const;
  /// Whether vectors, scales and ranges match their checksum. Trusts the header.
  bool dataIntact() const;
};

/// A view of the record at `bytes`. Its `bytes` is nullptr if the header cannot be that of a record of at most
/// `available` bytes.
RecordView viewRecord(const uint8_t* bytes, uint64_t available, RowShape shape);

}  // namespace maxsimd
