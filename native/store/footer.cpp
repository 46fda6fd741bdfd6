#include "store/footer.h"

#include "files/error.h"
#include "store/sections.h"

namespace maxsimd {
namespace {

size_t entryBytes(const FileTrailer& trailer) {
  return trailer.version == footerVersion ? sizeof(RecordEntry) : rangelessEntryBytes;
}

struct FooterLayout {
  uint64_t chunks;
  uint64_t bytes;

  static FooterLayout of(const FileTrailer& trailer) {
    FooterLayout layout{};
    layout.chunks = alignSection(uint64_t(trailer.records) * entryBytes(trailer));
    layout.bytes = layout.chunks + alignSection(uint64_t(trailer.chunks) * sizeof(ChunkEntry));
    return layout;
  }
};

/// Whether all directory entries stay inside the file. A checksum cannot show that.
bool consistent(const Footer& footer, RowShape shape) {
  uint64_t offset = sizeof(FileHeader), chunk = 0, rows = 0;
  for (const RecordEntry& record : footer.records) {
    const auto layout = RecordLayout::of(shape, record);
    if (record.offset != offset || record.firstChunk != chunk || record.chunks == 0) return false;
    offset += layout.bytes;
    chunk += record.chunks;
    rows += record.rows;
    if (offset > footer.offset || chunk > footer.chunks.size()) return false;
    if (footer.chunks[record.firstChunk].firstRow != 0) return false;
  }
  for (size_t c = 0; c < footer.chunks.size(); ++c) {
    const ChunkEntry& entry = footer.chunks[c];
    if (entry.record >= footer.records.size()) return false;
    const RecordEntry& record = footer.records[entry.record];
    const bool last = c + 1 == record.firstChunk + record.chunks;
    const uint32_t end = last ? record.rows : footer.chunks[c + 1].firstRow;
    if (c < record.firstChunk || c >= record.firstChunk + record.chunks || entry.firstRow >= end) return false;
  }
  return offset == footer.offset && chunk == footer.chunks.size() && rows == footer.rows;
}

/// The entries, which were shorter in an earlier version.
std::vector<RecordEntry> recordsOf(std::span<const uint8_t> body, const FileTrailer& trailer) {
  const size_t bytes = entryBytes(trailer);
  const auto stored = section<uint8_t>(body, 0, trailer.records * uint64_t(bytes));
  std::vector<RecordEntry> records(trailer.records);
  for (size_t r = 0; r < records.size(); ++r) std::memcpy(&records[r], stored.data() + r * bytes, bytes);
  return records;
}

}  // namespace

FooterBytes assembleFooter(uint64_t footerOffset, const Directory& directory) {
  FooterBytes footer{};
  FileTrailer& trailer = footer.trailer;
  trailer.magic = trailerMagic;
  trailer.version = footerVersion;
  trailer.footerOffset = footerOffset;
  trailer.records = uint32_t(directory.records.size());
  trailer.chunks = uint32_t(directory.chunks.size());
  trailer.rows = directory.rows;
  const auto layout = FooterLayout::of(trailer);
  trailer.fileBytes = footerOffset + layout.bytes + sizeof trailer;
  footer.body.resize(layout.bytes);
  putSection(footer.body, 0, directory.records);
  putSection(footer.body, layout.chunks, directory.chunks);
  trailer.footerCrc = crc32c(footer.body.data(), footer.body.size());
  trailer.crc = headerChecksum(trailer);
  return footer;
}

std::optional<Footer> readFooter(const File& file, uint64_t bytes, RowShape shape) {
  if (bytes < sizeof(FileHeader) + sizeof(FileTrailer) || bytes % sectionAlignment != 0) return std::nullopt;
  const uint64_t end = bytes - sizeof(FileTrailer);
  FileTrailer trailer;
  file.read(end, &trailer, sizeof trailer);
  if (trailer.magic != trailerMagic) return std::nullopt;
  if (trailer.version != footerVersion && trailer.version != rangelessFooterVersion) {
    throw Error(ErrorCode::unsupportedVersion,
                file.path() + ": footer format " + std::to_string(trailer.version) + " is not supported");
  }
  const auto damaged = [&file] { return Error(ErrorCode::corrupt, file.path() + ": damaged footer"); };
  if (trailer.crc != headerChecksum(trailer)) throw damaged();
  const auto layout = FooterLayout::of(trailer);
  if (trailer.fileBytes != bytes || trailer.footerOffset % sectionAlignment != 0 ||
      trailer.footerOffset < sizeof(FileHeader) || trailer.footerOffset > end ||
      end - trailer.footerOffset != layout.bytes) {
    throw damaged();
  }
  Footer footer{};
  footer.offset = trailer.footerOffset;
  footer.rows = trailer.rows;
  footer.crc = trailer.footerCrc;
  footer.body.resize(layout.bytes);
  file.read(footer.offset, footer.body.data(), footer.body.size());
  if (footer.crc != crc32c(footer.body.data(), footer.body.size())) throw damaged();
  footer.records = recordsOf(footer.body, trailer);
  footer.chunks = section<ChunkEntry>(footer.body, layout.chunks, trailer.chunks);
  if (!consistent(footer, shape)) throw damaged();
  return footer;
}

}  // namespace maxsimd
