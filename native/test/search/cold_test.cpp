// Searches of segments that are on disk and not in memory.
#include "search/page_prefetch.h"
#include "index/index.h"
#include "runtime/engine.h"
#include "search/search.h"
#include "test/sample.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace maxsimd::test {
namespace {

#if defined(__linux__)
constexpr uint32_t dim = 16, records = 20, chunks = 12, rows = 250;

/// Page faults of this thread that had to wait for a disk.
long waits() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

/// The page cache of one segment.
class Cache {
 public:
  Cache(const std::string& path, const Mapping& mapping)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), mapping_(mapping) {
    posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM);
  }
  ~Cache() { close(descriptor_); }
  Cache(const Cache&) = delete;

  /// Drops the pages. False where the system keeps them, as it does for files that exist in memory only.
  bool drop() const {
    mapping_.release(0, mapping_.bytes());
    posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
    unsigned char resident = 0;
    return mincore(const_cast<uint8_t*>(mapping_.base()), 1, &resident) == 0 && (resident & 1) == 0;
  }
  /// Reads the first `bytes` without reading ahead.
  void warm(uint64_t bytes) const {
    std::vector<char> page(4096);
    for (uint64_t at = 0; at < bytes; at += page.size())
      CHECK(pread(descriptor_, page.data(), page.size(), off_t(at)) > 0);
  }

 private:
  const int descriptor_;
  const Mapping& mapping_;
};

const Case cold("search", "the pages of candidates are asked for together, wherever they lie", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 30);
  Engine engine(1, "auto");
  Index index(engine.kernel(), IndexOptions{dim, 1000});
  const std::string path = directory.file("1.seg");
  index.createSegment(1, path);
  std::vector<Index::LifespanChange> born;
  for (uint32_t r = 0; r < records; ++r) {
    index.append(1, randomRecord(random, clusters, r + 1, std::vector<uint32_t>(chunks, rows)));
    born.push_back({1, r});
  }
  index.seal(1);
  index.publish(1, born, {});
  IndexSearch request{};
  for (uint32_t i = 0; i < 8; ++i) {
    const auto vector = clusters.near(random, i);
    request.query.insert(request.query.end(), vector.begin(), vector.end());
    request.offsets.push_back(0.0f);
  }
  request.topK = 10;
  request.candidateK = 60;
  request.generation = 1;
  request.plan = Plan::exact;

  const auto mapping = index.snapshot().front().mapping;
  const Cache cache(path, *mapping);
  const auto search = [&] { return maxsimd::search(index, engine.compute(), request).results; };
  const auto before = search();
  const auto waitsOfSearch = [&] {
    const long start = waits();
    const auto found = search();
    CHECK(found.size() == before.size());
    for (size_t i = 0; i < found.size(); ++i)
      CHECK(found[i].versionId == before[i].versionId && found[i].score == before[i].score);
    return waits() - start;
  };
  const auto fewestWaits = [&](uint64_t inMemory) {
    // Other work of the machine may take a page away.
    long fewest = 1;
    for (int round = 0; round < 5 && fewest > 0; ++round) {
      if (!cache.drop()) return 0L;
      cache.warm(inMemory);
      fewest = std::min(fewest, waitsOfSearch());
    }
    return fewest;
  };
  for (const uint64_t inMemory : {uint64_t(0), mapping->bytes() * (records - 1) / records})
    CHECK(fewestWaits(inMemory) == 0);

  // After all has been in memory for long, a thread stops asking. Then one search waits, and no other.
  for (uint32_t i = 0; i < callsAfterRead; ++i) search();
  if (!cache.drop()) return;
  CHECK(waitsOfSearch() > 0);
  CHECK(fewestWaits(0) == 0);
});
#endif

}  // namespace
}  // namespace maxsimd::test
