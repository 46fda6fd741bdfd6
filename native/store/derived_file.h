// The frame of a derived file (codes, codebook, postings, column): a header of 64 bytes that begins with magic, version and a
// checksum of the rest, then a body of sections (sections.h). The file is replaced as a whole.
#pragma once

#include "files/durable_file.h"
#include "files/error.h"
#include "files/file.h"
#include "store/sections.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

struct DerivedFormat {
  uint64_t magic;
  uint32_t version;
  /// The content, for error messages.
  const char* content;
  /// The oldest version that can be read.
  uint32_t versionOldest = version;
};

/// The sealed content that a derived file belongs to.
struct SegmentIdentity {
  uint64_t segmentId;
  uint32_t records;
  uint32_t footerCrc;
};

/// Reads the header of a file of `bytes` bytes. Returns what is wrong with it, or an empty string; throws
/// `unsupported_version`. The caller checks the other fields and the length of the body.
template <typename Header>
std::string readDerivedHeader(const File& file, uint64_t bytes, const DerivedFormat& format, Header& header) {
  if (bytes < sizeof header) return "shorter than its header";
  file.read(0, &header, sizeof header);
  if (header.magic != format.magic) return std::string("not a file of ") + format.content;
  if (header.version < format.versionOldest || header.version > format.version) {
    throw Error(ErrorCode::unsupportedVersion, file.path() + ": " + format.content + " format " +
                                                   std::to_string(header.version) + " is not supported");
  }
  if (header.crc != headerChecksum(header)) return "damaged header";
  return "";
}

/// Replaces the file durably. The parts of the body follow one another.
template <typename Header>
void saveDerived(const std::string& path, const DerivedFormat& format, Header header,
                 std::vector<std::span<const uint8_t>> body) {
  header.magic = format.magic;
  header.version = format.version;
  header.crc = headerChecksum(header);
  body.insert(body.begin(), {reinterpret_cast<const uint8_t*>(&header), sizeof header});
  replaceDurably(path, body);
}

}  // namespace maxsimd
