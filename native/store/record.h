// A document version as the bytes of its record (format.h).
#pragma once

#include "store/format.h"

#include <cstdint>
#include <memory>
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

  uint32_t rows() const;
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
  const uint16_t* scales() const { return reinterpret_cast<const uint16_t*>(bytes + layout.scales); }

  /// Whether the header and the sections before the vectors match their checksum.
  bool metaIntact() const;
  /// Whether vectors and scales match their checksum. Trusts the header.
  bool dataIntact() const;
};

/// A view of the record at `bytes`. Its `bytes` is nullptr if the header cannot be that of a record of at most
/// `available` bytes.
RecordView viewRecord(const uint8_t* bytes, uint64_t available, RowShape shape);

}  // namespace maxsimd
