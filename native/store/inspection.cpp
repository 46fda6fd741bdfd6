#include "store/inspection.h"

#include "files/error.h"
#include "files/file.h"
#include "store/footer.h"
#include "store/record.h"
#include "store/segment.h"

#include <string>
#include <utility>

namespace maxsimd {
namespace {

struct Bytes {
  std::vector<uint8_t> buffer;

  /// Reads the record at `offset`. An empty view if there cannot be one.
  RecordView read(const File& file, uint64_t offset, uint64_t end, RowShape shape) {
    RecordHeader header;
    if (offset + sizeof header > end) return {};
    file.read(offset, &header, sizeof header);
    if (header.magic != recordMagic || header.bytes < sizeof header || header.bytes > end - offset) return {};
    buffer.resize(header.bytes);
    file.read(offset, buffer.data(), buffer.size());
    return viewRecord(buffer.data(), buffer.size(), shape);
  }
};

/// The damage; empty = none.
std::string damageOf(const RecordView& view) {
  if (view.bytes == nullptr) return "no record";
  if (!view.metaIntact()) return "header, terms or chunk sizes";
  if (!view.dataIntact()) return "vectors, scales or ranges";
  return "";
}

std::string damageOf(const File& file, const Footer& footer, uint32_t record, uint64_t end, RowShape shape,
                     Bytes& bytes) try {
  const RecordEntry& entry = footer.records[record];
  const RecordView view = bytes.read(file, entry.offset, end, shape);
  std::string damage = damageOf(view);
  if (damage.empty() && view.header().versionId != entry.versionId) damage = "another document's record";
  return damage;
} catch (const Error& error) {
  if (error.code() != ErrorCode::io) throw;
  return error.what();
}

void inspectSealed(const File& file, const Footer& footer, const InspectionRange& range, SegmentInspection& found) {
  found.sealed = true;
  found.records = uint32_t(footer.records.size());
  found.chunks = uint32_t(footer.chunks.size());
  found.rows = footer.rows;
  found.directoryBytes = footer.body.size();
  found.recordBytes = footer.offset - sizeof(FileHeader);
  for (const RecordEntry& entry : footer.records) found.versionIds.push_back(entry.versionId);
  Bytes bytes;
  uint64_t read = 0;
  for (uint32_t r = range.firstRecord; r < found.records && read < range.bytesMax; ++r) {
    const RecordEntry& entry = footer.records[r];
    const uint64_t end = r + 1 < found.records ? footer.records[r + 1].offset : footer.offset;
    std::string damage = damageOf(file, footer, r, end, found.shape, bytes);
    if (!damage.empty()) found.damaged.push_back({r, std::move(damage)});
    read += end - entry.offset;
    ++found.recordsVerified;
  }
  if (read > 0) file.forget(footer.records[range.firstRecord].offset, read);
}

void inspectActive(const File& file, uint32_t recordsReferenced, const InspectionRange& range,
                   SegmentInspection& found) {
  Bytes bytes;
  uint64_t offset = sizeof(FileHeader);
  for (uint32_t r = 0; r < recordsReferenced; ++r) {
    const RecordView view = bytes.read(file, offset, found.fileBytes, found.shape);
    if (view.bytes == nullptr) {
      throw Error(ErrorCode::corrupt, file.path() + ": there is no record " + std::to_string(r) + ", " +
                                          std::to_string(recordsReferenced) + " are referenced");
    }
    if (range.bytesMax > 0) {
      std::string damage = damageOf(view);
      if (!damage.empty()) found.damaged.push_back({r, std::move(damage)});
      ++found.recordsVerified;
    }
    ++found.records;
    found.versionIds.push_back(view.header().versionId);
    found.chunks += view.header().chunks;
    found.rows += view.header().rows;
    offset += view.layout.bytes;
  }
  found.recordBytes = offset - sizeof(FileHeader);
}

}  // namespace

SegmentInspection inspectSegment(const std::string& path, uint32_t recordsReferenced, const InspectionRange& range) {
  const File file = File::openReadOnly(path);
  SegmentInspection found;
  found.fileBytes = file.size();
  const FileHeader header = readFileHeader(file, found.fileBytes);
  found.segmentId = header.segmentId;
  found.shape = header.shape();
  if (const auto footer = readFooter(file, found.fileBytes, found.shape)) {
    if (footer->records.size() < recordsReferenced) {
      throw Error(ErrorCode::corrupt, path + ": fewer records than are referenced");
    }
    inspectSealed(file, *footer, range, found);
  } else {
    inspectActive(file, recordsReferenced, range, found);
  }
  return found;
}

}  // namespace maxsimd
