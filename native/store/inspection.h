// Reads what a segment file holds and whether it is intact, without changing the file and without opening it for
// searches. Works beside a running server and on files that cannot be opened any more.
#pragma once

#include "kernels/rows.h"

#include <cstdint>
#include <string>
#include <vector>

namespace maxsimd {

struct RecordDamage {
  uint32_t record;
  std::string what;
};

struct SegmentInspection {
  uint64_t segmentId = 0;
  RowShape shape = 0;
  bool sealed = false;
  uint64_t fileBytes = 0;
  uint32_t records = 0;
  uint32_t chunks = 0;
  uint64_t rows = 0;
  /// Bytes of records with their headers and padding, and bytes of the directory.
  uint64_t recordBytes = 0;
  uint64_t directoryBytes = 0;
  /// How many records were verified, from the first one asked for, and which of them are damaged.
  uint32_t recordsVerified = 0;
  std::vector<RecordDamage> damaged;
  /// The version id of each record, from the directory, or from the headers of an active segment.
  std::vector<uint64_t> versionIds;
};

struct InspectionRange {
  uint32_t firstRecord;
  /// The range ends with the record that reaches this number of bytes; 0 = verify no record.
  uint64_t bytesMax;
};

/// Inspects a segment file. Throws `corrupt` if its header or footer is damaged or records are missing,
/// `unsupported_version` for another format. Of an active segment the first `recordsReferenced` records are read. The
/// page cache drops what was read, so that verifying does not displace what searches use.
SegmentInspection inspectSegment(const std::string& path, uint32_t recordsReferenced, const InspectionRange& range);

}  // namespace maxsimd
