// The segment file: an append log of document records, sealed once by a footer.
//
//   FileHeader                       64 bytes
//   record 0, record 1, ...          each starts at a multiple of 64 and is a multiple of 64 long
//   [sealed only] directory, FileTrailer (the last 64 bytes of the file)
//
// All integers are little-endian; every section starts at a multiple of 64 bytes and is padded with zeros.
//
// FileHeader
//   offset size field
//   0      8    magic "MAXSIMSG"
//   8      4    formatVersion: 4; before text ranges 2, or 3 with rows of 1, 2 or 4 bits
//   12     4    crc32c of bytes [16, 64)
//   16     8    segmentId
//   24     4    dim, components of a token vector, 1..1024
//   28     4    bits of a component: 1, 2 or 4; 0 stands for 8
//   32     32   zero
//
// Record: one document version
//   RecordHeader
//   0      4    magic "MXRC"
//   4      4    crc32c of the data sections: vectors, scales and ranges with their padding
//   8      8    bytes of the whole record
//   16     8    versionId
//   24     4    chunks (>= 1)
//   28     4    rows, token vectors of all chunks (>= chunks)
//   32     4    terms
//   36     4    bytes of ranges and places; 0 = it is unknown where its chunks lie in their text
//   40     20   zero
//   60     4    crc32c of bytes [0, 60) and of the sections between the header and the vectors
//   sections
//     chunkRows    u32 [chunks]            rows of each chunk, each >= 1
//     terms        u8  [terms][16]         hashes that filters match
//     vectors      rows as kernels read them (kernels/rows.h), one behind another; of 8 bits i8 [rows][dim]
//     scales       f16 [rows]              value = component * scale
//     ranges       ChunkRange [chunks]     where each chunk lies in the text of its document
//     places       u8                      where each row lies, chunk by chunk (src/encoder/protocol/row-places.ts);
//                                          one section together with the ranges
//
// Directory, covered by the trailer's footerCrc
//     records      RecordEntry [records]; in footer version 3 without its last 8 bytes
//     chunks       ChunkEntry [chunks]
//
// FileTrailer
//   0      8    magic "MAXSIMFT"
//   8      4    footerVersion: 4, or 3
//   12     4    crc32c of bytes [16, 64)
//   16     8    footerOffset, where `records` starts
//   24     8    fileBytes, including this trailer
//   32     4    records
//   36     4    chunks
//   40     8    rows
//   48     8    zero
//   56     4    footerCrc: crc32c of [footerOffset, fileBytes - 64)
//   60     4    zero
//
// The footer is synced before the trailer is written, and the trailer before the catalog notes the segment as sealed.
// Until then the segment is active: a footer in the file may not be durable and is cut off. Afterwards a missing or
// damaged footer is damage. At least 64 readable bytes (preallocated space or the footer) follow the data of the last
// record, because kernels may read a little past a row.
#pragma once

#include "kernels/rows.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace maxsimd {

static_assert(std::endian::native == std::endian::little, "segment files are mapped as they are");

inline constexpr uint64_t fileMagic = 0x47534d495358414dull;     // "MAXSIMSG"
inline constexpr uint64_t trailerMagic = 0x54464d495358414dull;  // "MAXSIMFT"
inline constexpr uint32_t recordMagic = 0x4352584du;             // "MXRC"
inline constexpr uint32_t formatVersion = 4;
/// Segments without text ranges have these.
inline constexpr uint32_t rangelessVersion = 2;
inline constexpr uint32_t rangelessFewBitsVersion = 3;
inline constexpr uint32_t footerVersion = 4;
inline constexpr uint32_t rangelessFooterVersion = 3;
inline constexpr size_t sectionAlignment = 64;
inline constexpr size_t termBytes = 16;
inline constexpr uint32_t recordChunksMax = 1u << 20;
inline constexpr uint32_t recordRowsMax = 1u << 22;
inline constexpr uint32_t recordTermsMax = 1u << 16;

struct FileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  uint64_t segmentId;
  uint32_t dim;
  uint32_t fewBits;
  uint8_t zero[32];

  RowShape shape() const { return {dim, fewBits == 0 ? 8 : fewBits}; }
};
static_assert(sizeof(FileHeader) == 64);

struct RecordHeader {
  uint32_t magic;
  uint32_t dataCrc;
  uint64_t bytes;
  uint64_t versionId;
  uint32_t chunks;
  uint32_t rows;
  uint32_t terms;
  uint32_t rangeBytes;
  uint8_t zero[20];
  uint32_t metaCrc;
};
static_assert(sizeof(RecordHeader) == 64);

struct FileTrailer {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  uint64_t footerOffset;
  uint64_t fileBytes;
  uint32_t records;
  uint32_t chunks;
  uint64_t rows;
  uint64_t zero;
  uint32_t footerCrc;
  uint32_t lastZero;
};
static_assert(sizeof(FileTrailer) == 64);

/// The place and the sizes of a record, so that a search need not read its header.
struct RecordEntry {
  uint64_t offset;
  uint64_t versionId;
  uint32_t firstChunk;
  uint32_t chunks;
  uint32_t rows;
  uint32_t terms;
  uint32_t rangeBytes;
  uint32_t zero;
};
static_assert(sizeof(RecordEntry) == 40);
inline constexpr size_t rangelessEntryBytes = 32;

struct ChunkEntry {
  uint32_t record;
  /// The chunk's first token vector, counted among the record's.
  uint32_t firstRow;
};
static_assert(sizeof(ChunkEntry) == 8);

/// Where a chunk lies in the text of its document, in code points.
struct ChunkRange {
  uint32_t start;
  uint32_t end;
  /// Bytes of the places of its rows.
  uint32_t placeBytes;
};
static_assert(sizeof(ChunkRange) == 12);

constexpr uint64_t alignSection(uint64_t bytes) {
  return (bytes + sectionAlignment - 1) & ~uint64_t(sectionAlignment - 1);
}

/// Byte offsets of a record's sections from its start.
struct RecordLayout {
  uint64_t chunkRows;
  uint64_t terms;
  uint64_t vectors;
  uint64_t scales;
  uint64_t ranges;
  uint64_t bytes;

  /// `record`: a RecordHeader or a RecordEntry.
  static constexpr RecordLayout of(RowShape shape, const auto& record) {
    RecordLayout layout{};
    layout.chunkRows = sizeof(RecordHeader);
    layout.terms = layout.chunkRows + alignSection(uint64_t(record.chunks) * 4);
    layout.vectors = layout.terms + alignSection(uint64_t(record.terms) * termBytes);
    layout.scales = layout.vectors + alignSection(uint64_t(record.rows) * shape.bytes());
    layout.ranges = layout.scales + alignSection(uint64_t(record.rows) * 2);
    layout.bytes = layout.ranges + alignSection(record.rangeBytes);
    return layout;
  }
};

}  // namespace maxsimd
