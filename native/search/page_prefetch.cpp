#include "search/page_prefetch.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace maxsimd {
namespace {

/// Asks for the pages of some bytes. Adjacent ranges share one call, as all chunks of a small index do.
class Pages {
 public:
  ~Pages() { ask(); }

  void add(const void* bytes, size_t count) {
    if (extend(bytes, count)) return;
    ask();
    first_ = firstPage(bytes);
    end_ = endPage(bytes, count);
  }

  /// Adds bytes that overlap or touch the current range; false if they do not.
  bool extend(const void* bytes, size_t count) {
    if (firstPage(bytes) < first_ || firstPage(bytes) > end_) return false;
    end_ = std::max(end_, endPage(bytes, count));
    return true;
  }

 private:
  static uintptr_t pageBytes() {
    static const auto bytes = uintptr_t(sysconf(_SC_PAGESIZE));
    return bytes;
  }

  static uintptr_t firstPage(const void* bytes) { return reinterpret_cast<uintptr_t>(bytes) & ~(pageBytes() - 1); }

  static uintptr_t endPage(const void* bytes, size_t count) {
    return (reinterpret_cast<uintptr_t>(bytes) + count + pageBytes() - 1) & ~(pageBytes() - 1);
  }

  void ask() const {
    if (end_ > first_) madvise(reinterpret_cast<void*>(first_), end_ - first_, MADV_WILLNEED);
  }

  uintptr_t first_ = 0, end_ = 0;
};

/// Whether this thread has recently read from a disk, by a page fault or by asking for pages. A new thread counts as
/// one that has.
bool readsDisk() {
#if defined(__linux__)
  thread_local long readsBefore = -1;
  thread_local uint32_t callsLeft = 0;
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const long reads = usage.ru_majflt + usage.ru_inblock;
  if (reads != readsBefore) callsLeft = callsAfterRead;
  readsBefore = reads;
  if (callsLeft == 0) return false;
  --callsLeft;
#endif
  return true;
}

}  // namespace

void prefetchPages(const std::vector<Selection>& selections, const Candidate* candidates, size_t count) {
  if (!readsDisk()) return;
  Pages vectors, scales, records;
  for (size_t i = 0; i < count; ++i) {
    const Candidate& candidate = candidates[i];
    const SegmentSnapshot& snapshot = selections[candidate.selection].snapshot;
    const Segment& segment = *snapshot.segment;
    const uint32_t number = segment.chunk(candidate.chunk).record;
    const RecordView record = segment.view(*snapshot.mapping, number);
    if (!segment.dataChecked(number)) {
      // The first read of a record reads all of it, for its checksum.
      records.add(record.bytes, record.layout.bytes);
      continue;
    }
    const size_t firstRow = segment.chunk(candidate.chunk).firstRow, rows = segment.chunkRows(candidate.chunk);
    const size_t rowBytes = segment.shape().bytes();
    vectors.add(record.vectors() + firstRow * rowBytes, rows * rowBytes + readPaddingBytes);
    // The scales come after the vectors of all chunks of the record, so they are far away in a long record.
    const uint16_t* own = record.scales() + firstRow;
    const size_t scaleBytes = rows * sizeof(uint16_t) + readPaddingBytes;
    if (!vectors.extend(own, scaleBytes)) scales.add(own, scaleBytes);
  }
}

}  // namespace maxsimd
