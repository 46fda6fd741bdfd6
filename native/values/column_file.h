// The values of one metadata field in the records of a sealed segment, as a file.
//
// The file is `<segment>.columns-<hash of the field in 16 hexadecimal digits>`. A name with dots is hashed with a byte 0xff
// behind it, because files of earlier releases hold no nested values. Its values come from the catalog, or from the
// files of the segments that were merged. A file that is missing, damaged, of another format, or of another segment
// or field is not used. The values are then read from the catalog again.
//
//   offset size field
//   0      8    magic "MAXSIMCL"
//   8      4    formatVersion (1)
//   12     4    crc32c of bytes [16, 64)
//   16     8    segmentId
//   24     4    records of the segment
//   28     4    footerCrc of the segment's trailer
//   32     4    crc32c of all bytes behind the header
//   36     4    bytes of the field's name, in UTF-8
//   40     4    blocks
//   44     4    blocks that hold dates
//   48     8    bytes of the blocks
//   56     4    entries of the blocks
//   60     4    places of the entries
//   64          sections, each padded with zeros to a multiple of 64:
//     blocks       the run (value_run.h)
//     blockStarts  u64 [blocks]            where each block begins in `blocks`
//     dateZones    DateZone [blocks that hold dates]
//     known        one bit a record: whether its values are here
//     present      one bit a record: whether it has the field
//     field        u8
//
// All checksums are compared when the file is opened.
#pragma once

#include "runtime/bitmap.h"
#include "store/derived_file.h"
#include "values/value_run.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// A segment that keeps columns beside it.
struct ColumnPlace {
  std::string segmentPath;
  SegmentIdentity segment;
};

/// The end of a file's name: `.columns-` and the field's hash (above).
std::string columnEnding(const std::string& field);

struct StoredColumn {
  std::string field;
  Bitmap known, present;
  std::shared_ptr<const ValueRun> run;
};

/// The column of a field. Nothing if there is no file that can be used. Its file then counts as used just now.
std::optional<StoredColumn> openColumn(const ColumnPlace& place, const std::string& field);
/// Replaces the file durably by the values of runs that have no record in common. `io` if one of them cannot be read.
void saveColumn(const ColumnPlace& place, const std::string& field, const Bitmap& known, const Bitmap& present,
                std::span<const RunSource> runs);
/// The same runs as one. Its blocks lie in a file without a name, which goes when the run goes.
std::shared_ptr<const ValueRun> spilledRun(const ColumnPlace& place, const std::string& field,
                                           std::span<const RunSource> runs);

/// Says that a file is used now.
void touchColumn(const ColumnPlace& place, const std::string& field);

/// The endings of the segment's files, those used last first.
std::vector<std::string> columnEndings(const std::string& segmentPath);
/// The field of a file; nothing if it cannot be used.
std::optional<std::string> fieldOfColumn(const ColumnPlace& place, const std::string& ending);

struct ColumnInspection {
  std::string field;
  uint32_t entries = 0, items = 0;
  /// Empty = nothing is wrong.
  std::string damage;
};

/// Inspects a file of a column: its header and, with `verify`, its checksum. Throws `unsupported_version` for another
/// format.
ColumnInspection inspectColumn(const std::string& path, bool verify);

}  // namespace maxsimd
