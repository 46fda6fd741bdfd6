#include "candidates/page_prefetch.h"

#include <sys/mman.h>
#include <unistd.h>

namespace maxsimd {
namespace {

constexpr size_t candidatesMax = 8192;

/// The whole pages around some bytes.
struct Pages {
  uintptr_t first, end;

  Pages(const void* bytes, size_t count) {
    static const auto pageBytes = uintptr_t(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<uintptr_t>(bytes);
    first = from & ~(pageBytes - 1);
    end = (from + count + pageBytes - 1) & ~(pageBytes - 1);
  }

  void prefetch() const { madvise(reinterpret_cast<void*>(first), end - first, MADV_WILLNEED); }
};

void prefetchChunk(const Segment& segment, const RecordView& record, uint32_t number) {
  const ChunkEntry& chunk = segment.chunk(number);
  const uint32_t rows = segment.chunkRows(number), dim = segment.dim();
  Pages vectors(record.vectors() + size_t(chunk.firstRow) * dim, size_t(rows) * dim + readPaddingBytes);
  // Behind the vectors of all chunks of the record: far away if there are many.
  const Pages scales(record.scales() + chunk.firstRow, size_t(rows) * sizeof(uint16_t) + readPaddingBytes);
  if (scales.first <= vectors.end)
    vectors.end = scales.end;
  else
    scales.prefetch();
  vectors.prefetch();
}

}  // namespace

void prefetchPages(const std::vector<Selection>& selections, const std::vector<Candidate>& candidates) {
  if (candidates.size() > candidatesMax) return;
  const uint8_t* before = nullptr;
  for (const Candidate& candidate : candidates) {
    const SegmentSnapshot& snapshot = selections[candidate.selection].snapshot;
    const Segment& segment = *snapshot.segment;
    const uint32_t number = segment.chunk(candidate.chunk).record;
    const RecordView record = segment.view(*snapshot.mapping, number);
    if (segment.dataChecked(number)) {
      prefetchChunk(segment, record, candidate.chunk);
    } else if (record.bytes != before) {
      // The first to touch a record reads all of it, for its checksum.
      Pages(record.bytes, record.layout.bytes).prefetch();
      before = record.bytes;
    }
  }
}

}  // namespace maxsimd
