#include "store/footer.h"

#include "store/crc32c.h"
#include "store/error.h"

#include <algorithm>
#include <cstring>

namespace maxsimd {
namespace {

constexpr size_t crcStart = 16;

struct FooterLayout {
  uint64_t chunks;
  uint64_t termKeys;
  uint64_t termOffsets;
  uint64_t postings;
  uint64_t bytes;

  static FooterLayout of(uint64_t records, uint64_t chunks, uint64_t terms, uint64_t postings) {
    FooterLayout layout{};
    layout.chunks = alignSection(records * sizeof(RecordEntry));
    layout.termKeys = layout.chunks + alignSection(chunks * sizeof(ChunkEntry));
    layout.termOffsets = layout.termKeys + alignSection(terms * termBytes);
    layout.postings = layout.termOffsets + alignSection((terms + 1) * 4);
    layout.bytes = layout.postings + alignSection(postings * 4);
    return layout;
  }
};

template <typename T>
void put(std::vector<uint8_t>& bytes, uint64_t offset, std::span<const T> values) {
  if (!values.empty()) std::memcpy(bytes.data() + offset, values.data(), values.size_bytes());
}

bool ascends(std::span<const uint32_t> offsets, size_t last) {
  return offsets.front() == 0 && offsets.back() == last && std::is_sorted(offsets.begin(), offsets.end());
}

/// Directory entries that would lead outside the records are damage a checksum cannot see.
bool consistent(const FooterView& footer, uint64_t footerOffset, uint32_t dim) {
  uint64_t offset = sizeof(FileHeader), chunk = 0, rows = 0;
  for (const RecordEntry& record : footer.records) {
    const auto layout = RecordLayout::of(dim, record.chunks, record.rows, record.terms);
    if (record.offset != offset || record.firstChunk != chunk || record.chunks == 0) return false;
    offset += layout.bytes;
    chunk += record.chunks;
    rows += record.rows;
    if (offset > footerOffset || chunk > footer.chunks.size()) return false;
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
  for (const uint32_t record : footer.postings.records) {
    if (record >= footer.records.size()) return false;
  }
  if (!ascends(footer.postings.offsets, footer.postings.records.size())) return false;
  return offset == footerOffset && chunk == footer.chunks.size() && rows == footer.rows;
}

}  // namespace

std::vector<uint32_t> SealedPostings::find(const Term& term) const {
  const auto found = std::lower_bound(keys.begin(), keys.end(), term);
  if (found == keys.end() || *found != term) return {};
  const size_t t = size_t(found - keys.begin());
  return {records.begin() + offsets[t], records.begin() + offsets[t + 1]};
}

FooterBytes assembleFooter(uint64_t footerOffset, const Directory& directory, const ActivePostings& postings) {
  std::vector<Term> keys;
  std::vector<uint32_t> offsets{0};
  std::vector<uint32_t> matches;
  for (const auto& [term, carriers] : postings.terms()) {
    keys.push_back(term);
    matches.insert(matches.end(), carriers.begin(), carriers.end());
    offsets.push_back(uint32_t(matches.size()));
  }
  const auto layout = FooterLayout::of(directory.records.size(), directory.chunks.size(), keys.size(), matches.size());
  FooterBytes footer{std::vector<uint8_t>(layout.bytes), {}};
  put<RecordEntry>(footer.body, 0, directory.records);
  put<ChunkEntry>(footer.body, layout.chunks, directory.chunks);
  put<Term>(footer.body, layout.termKeys, keys);
  put<uint32_t>(footer.body, layout.termOffsets, offsets);
  put<uint32_t>(footer.body, layout.postings, matches);

  FileTrailer& trailer = footer.trailer;
  trailer.magic = trailerMagic;
  trailer.version = formatVersion;
  trailer.footerOffset = footerOffset;
  trailer.fileBytes = footerOffset + layout.bytes + sizeof trailer;
  trailer.records = uint32_t(directory.records.size());
  trailer.chunks = uint32_t(directory.chunks.size());
  trailer.rows = directory.rows;
  trailer.terms = uint32_t(keys.size());
  trailer.postings = uint32_t(matches.size());
  trailer.footerCrc = crc32c(footer.body.data(), footer.body.size());
  trailer.crc = crc32c(reinterpret_cast<const uint8_t*>(&trailer) + crcStart, sizeof trailer - crcStart);
  return footer;
}

std::optional<FooterView> readFooter(const uint8_t* file, uint64_t bytes, uint32_t dim, const std::string& path) {
  if (bytes < sizeof(FileHeader) + sizeof(FileTrailer) || bytes % sectionAlignment != 0) return std::nullopt;
  FileTrailer trailer;
  std::memcpy(&trailer, file + bytes - sizeof trailer, sizeof trailer);
  if (trailer.magic != trailerMagic) return std::nullopt;
  if (trailer.version != formatVersion) {
    throw Error(ErrorCode::unsupportedVersion,
                path + ": footer format " + std::to_string(trailer.version) + " is not supported");
  }
  const auto damaged = [&path] { return Error(ErrorCode::corrupt, path + ": damaged footer"); };
  if (trailer.crc != crc32c(reinterpret_cast<const uint8_t*>(&trailer) + crcStart, sizeof trailer - crcStart)) {
    throw damaged();
  }
  const auto layout =
      FooterLayout::of(trailer.records, trailer.chunks, trailer.terms, trailer.postings);
  if (trailer.fileBytes != bytes || trailer.footerOffset % sectionAlignment != 0 ||
      trailer.footerOffset < sizeof(FileHeader) || layout.bytes > bytes ||
      trailer.footerOffset + layout.bytes + sizeof trailer != bytes) {
    throw damaged();
  }
  const uint8_t* body = file + trailer.footerOffset;
  if (trailer.footerCrc != crc32c(body, layout.bytes)) throw damaged();
  FooterView footer{};
  footer.rows = trailer.rows;
  footer.records = {reinterpret_cast<const RecordEntry*>(body), trailer.records};
  footer.chunks = {reinterpret_cast<const ChunkEntry*>(body + layout.chunks), trailer.chunks};
  footer.postings.keys = {reinterpret_cast<const Term*>(body + layout.termKeys), trailer.terms};
  footer.postings.offsets = {reinterpret_cast<const uint32_t*>(body + layout.termOffsets), size_t(trailer.terms) + 1};
  footer.postings.records = {reinterpret_cast<const uint32_t*>(body + layout.postings), trailer.postings};
  if (!consistent(footer, trailer.footerOffset, dim)) throw damaged();
  return footer;
}

}  // namespace maxsimd
