#include "candidates/page_prefetch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace maxsimd {
namespace {

constexpr size_t candidatesMax = 8192;
constexpr size_t samples = 16;

/// Whole pages around what scoring will read of a candidate.
struct Pages {
  uint8_t* first;
  size_t bytes;
};

Pages pagesOf(const std::vector<Selection>& selections, const Candidate& candidate) {
  static const auto pageBytes = uintptr_t(sysconf(_SC_PAGESIZE));
  const SegmentSnapshot& snapshot = selections[candidate.selection].snapshot;
  const Segment& segment = *snapshot.segment;
  const ChunkEntry& chunk = segment.chunk(candidate.chunk);
  const RecordView view = segment.view(*snapshot.mapping, chunk.record);
  const auto* vectors = reinterpret_cast<const uint8_t*>(view.vectors());
  // The first to touch a record reads all of it, for its checksum.
  const bool whole = !segment.dataChecked(chunk.record);
  const uint8_t* from = whole ? view.bytes : vectors + size_t(chunk.firstRow) * segment.dim();
  const uint8_t* to =
      whole ? view.bytes + view.layout.bytes : from + size_t(segment.chunkRows(candidate.chunk)) * segment.dim();
  const uintptr_t start = reinterpret_cast<uintptr_t>(from) & ~(pageBytes - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(to) + pageBytes - 1) & ~(pageBytes - 1);
  return {reinterpret_cast<uint8_t*>(start), size_t(end - start)};
}

bool inMemory(const Pages& pages) {
  // One page stands for them all: they came together.
  unsigned char resident = 0;
#if defined(__APPLE__)
  const bool known = mincore(reinterpret_cast<char*>(pages.first), 1, reinterpret_cast<char*>(&resident)) == 0;
#else
  const bool known = mincore(pages.first, 1, &resident) == 0;
#endif
  return !known || (resident & 1) != 0;
}

}  // namespace

void prefetchCold(const std::vector<Selection>& selections, const std::vector<Candidate>& candidates) {
  const size_t count = candidates.size();
  if (count == 0 || count > candidatesMax) return;
  const size_t step = std::max<size_t>(1, count / samples);
  bool cold = false;
  for (size_t i = 0; i < count && !cold; i += step) cold = !inMemory(pagesOf(selections, candidates[i]));
  if (!cold) return;
  for (const Candidate& candidate : candidates) {
    const Pages pages = pagesOf(selections, candidate);
    madvise(pages.first, pages.bytes, MADV_WILLNEED);
  }
}

}  // namespace maxsimd
