// What a segment file holds and whether it is intact, read without changing it and without opening it for
// searches: beside a running server, or of a file that does not open any more.
#pragma once

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
  uint32_t dim = 0;
  bool sealed = false;
  uint64_t fileBytes = 0;
  uint32_t records = 0;
  uint32_t chunks = 0;
  uint64_t rows = 0;
  /// Bytes of records with headers and padding, and of the directory.
  uint64_t recordBytes = 0;
  uint64_t directoryBytes = 0;
  /// Records whose checksums were looked at, from the first one asked for, and those that are damaged.
  uint32_t recordsVerified = 0;
  std::vector<RecordDamage> damaged;
  /// What the directory (of an active segment: each header) says that each record holds.
  std::vector<uint64_t> versionIds;
};

struct InspectionRange {
  uint32_t firstRecord;
  /// The range ends with the record that reaches it; 0 = verify no record.
  uint64_t bytesMax;
};

/// Throws `corrupt` when header or footer are damaged or records are missing, `unsupported_version` for a
/// file of another format. `recordsReferenced`: of an active segment, as many leading records are looked at.
/// Records are read past the page cache as far as it lets go of them, so that verifying does not push out
/// what searches use.
SegmentInspection inspectSegment(const std::string& path, uint32_t recordsReferenced, const InspectionRange& range);

}  // namespace maxsimd
