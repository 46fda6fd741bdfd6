#include "store/record.h"

#include "files/crc32c.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace maxsimd {
namespace {

uint32_t metaChecksum(const uint8_t* bytes, const RecordLayout& layout) {
  const uint32_t header = crc32c(bytes, offsetof(RecordHeader, metaCrc));
  return crc32c(bytes + sizeof(RecordHeader), layout.vectors - sizeof(RecordHeader), header);
}

}  // namespace

uint32_t RecordParts::rows() const { return std::accumulate(chunkRows.begin(), chunkRows.end(), 0u); }

std::vector<uint8_t> assembleRecord(const RecordParts& parts, RowShape shape) {
  const uint32_t rows = parts.rows();
  RecordHeader header{};
  header.magic = recordMagic;
  header.versionId = parts.versionId;
  header.chunks = uint32_t(parts.chunkRows.size());
  header.rows = rows;
  header.terms = uint32_t(parts.terms.size() / termBytes);
  header.rangeBytes = uint32_t(parts.ranges.size() * sizeof(ChunkRange) + parts.places.size());
  const auto layout = RecordLayout::of(shape, header);
  header.bytes = layout.bytes;

  std::vector<uint8_t> bytes(layout.bytes);
  std::memcpy(bytes.data() + layout.chunkRows, parts.chunkRows.data(), parts.chunkRows.size() * 4);
  if (!parts.terms.empty()) std::memcpy(bytes.data() + layout.terms, parts.terms.data(), parts.terms.size());
  std::memcpy(bytes.data() + layout.vectors, parts.vectors.data(), rows * shape.bytes());
  std::memcpy(bytes.data() + layout.scales, parts.scales.data(), size_t(rows) * 2);
  if (!parts.ranges.empty()) {
    const size_t rangesBytes = parts.ranges.size() * sizeof(ChunkRange);
    std::memcpy(bytes.data() + layout.ranges, parts.ranges.data(), rangesBytes);
    std::copy(parts.places.begin(), parts.places.end(), bytes.data() + layout.ranges + rangesBytes);
  }

  header.dataCrc = crc32c(bytes.data() + layout.vectors, layout.bytes - layout.vectors);
  std::memcpy(bytes.data(), &header, sizeof header);
  header.metaCrc = metaChecksum(bytes.data(), layout);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

bool RecordView::metaIntact() const { return header().metaCrc == metaChecksum(bytes, layout); }

bool RecordView::dataIntact() const {
  return header().dataCrc == crc32c(bytes + layout.vectors, layout.bytes - layout.vectors);
}

std::optional<ChunkPlace> RecordView::placeOf(uint32_t chunk) const {
  const auto all = ranges();
  if (all.empty()) return std::nullopt;
  uint64_t first = 0;
  for (const ChunkRange& range : all.first(chunk)) first += range.placeBytes;
  const ChunkRange& range = all[chunk];
  if (first + range.placeBytes > places().size()) return std::nullopt;
  return ChunkPlace{range.start, range.end, places().subspan(first, range.placeBytes)};
}

RecordView viewRecord(const uint8_t* bytes, uint64_t available, RowShape shape) {
  if (available < sizeof(RecordHeader)) return {};
  RecordHeader header;
  std::memcpy(&header, bytes, sizeof header);
  if (header.magic != recordMagic || header.bytes > available || header.chunks == 0 ||
      header.chunks > recordChunksMax || header.rows < header.chunks || header.rows > recordRowsMax ||
      header.terms > recordTermsMax ||
      (header.rangeBytes != 0 && header.rangeBytes < header.chunks * sizeof(ChunkRange))) {
    return {};
  }
  const auto layout = RecordLayout::of(shape, header);
  if (layout.bytes != header.bytes) return {};
  return {bytes, layout};
}

}  // namespace maxsimd
