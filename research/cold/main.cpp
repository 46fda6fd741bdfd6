// cold FILE [--gib 4] [--rows 64] [--chunks 200] [--rounds 9]: exact scores of scattered chunks of which a share is not
// in memory, read in several ways that take turns. FILE is made if there is none: documents of ten chunks, the scales
// of a document behind its vectors, as in a segment.
#include "ring.h"

#include "kernels/dispatch.h"
#include "runtime/query.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace research;

namespace {

constexpr uint32_t dim = 128, chunksOfDocument = 10, queryTokens = 32;
constexpr uint64_t pageBytes = 4096;

struct Shape {
  uint32_t rows;
  uint64_t documentBytes() const {
    const uint64_t bytes = uint64_t(chunksOfDocument) * rows * (dim + 2);
    return (bytes + 63) / 64 * 64;
  }
  uint64_t vectors(uint64_t chunk) const {
    return chunk / chunksOfDocument * documentBytes() + chunk % chunksOfDocument * rows * dim;
  }
  uint64_t scales(uint64_t chunk) const {
    return chunk / chunksOfDocument * documentBytes() + uint64_t(chunksOfDocument) * rows * dim +
           chunk % chunksOfDocument * rows * 2;
  }
};

double nowMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void makeFile(const std::string& path, uint64_t bytes) {
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  std::vector<uint64_t> block(1 << 17);
  std::mt19937_64 random(1);
  for (uint64_t at = 0; at < bytes; at += block.size() * 8) {
    for (auto& word : block) word = random() & 0x1c1f1c1f1c1f1c1full;
    if (write(file, block.data(), block.size() * 8) < 0) std::perror("write");
  }
  fsync(file);
  close(file);
}

struct Stage {
  int file;
  uint8_t* base;
  uint64_t bytes;
  Shape shape;
  const maxsimd::Kernel& kernel;
  maxsimd::Query query;
  std::vector<uint64_t> chosen;

  maxsimd::Chunk mapped(uint64_t chunk) const {
    return {reinterpret_cast<const int8_t*>(base + shape.vectors(chunk)),
            reinterpret_cast<const uint16_t*>(base + shape.scales(chunk)), shape.rows};
  }
  float score(const std::vector<maxsimd::Chunk>& chunks) const {
    std::vector<float> scores(chunks.size());
    kernel.maxsim(query.packed(), chunks.data(), chunks.size(), scores.data());
    float sum = 0;
    for (const float one : scores) sum += std::isfinite(one) ? one : 0.0f;
    return sum;
  }
  float scoreMapped() const {
    std::vector<maxsimd::Chunk> chunks;
    for (const uint64_t chunk : chosen) chunks.push_back(mapped(chunk));
    return score(chunks);
  }
  /// Whole pages around [offset, offset + length).
  std::pair<uint8_t*, size_t> pages(uint64_t offset, uint64_t length) const {
    const uint64_t first = offset / pageBytes * pageBytes, last = (offset + length + pageBytes - 1) / pageBytes * pageBytes;
    return {base + first, size_t(last - first)};
  }
  void advise(uint64_t offset, uint64_t length, int advice) const {
    const auto [at, size] = pages(offset, length);
    madvise(at, size, advice);
  }
  /// Whether one of the pages is not in memory.
  bool missing(uint64_t offset, uint64_t length) const {
    const auto [at, size] = pages(offset, length);
    unsigned char resident[256];
    const size_t count = std::min<size_t>(size / pageBytes, sizeof resident);
    if (mincore(at, count * pageBytes, resident) != 0) return true;
    return std::any_of(resident, resident + count, [](unsigned char page) { return (page & 1) == 0; });
  }
  void adviseMissing(uint64_t offset, uint64_t length) const {
    if (missing(offset, length)) advise(offset, length, MADV_WILLNEED);
  }
};

/// Jobs shared among threads made before.
void shared(uint32_t threads, size_t count, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < count;) body(i);
  };
  std::vector<std::thread> others;
  for (uint32_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (auto& other : others) other.join();
}

struct Way {
  std::string name;
  std::function<float(const Stage&)> run;
  std::vector<double> ms;
};

std::vector<Read> readsOf(const Stage& stage, std::vector<std::vector<int8_t>>& vectors,
                          std::vector<std::vector<uint16_t>>& scales) {
  const uint32_t rows = stage.shape.rows;
  std::vector<Read> reads;
  for (const uint64_t chunk : stage.chosen) {
    vectors.emplace_back(size_t(rows) * dim + maxsimd::readPaddingBytes);
    scales.emplace_back(rows + maxsimd::readPaddingBytes);
    reads.push_back({vectors.back().data(), rows * dim, stage.shape.vectors(chunk)});
    reads.push_back({scales.back().data(), rows * 2, stage.shape.scales(chunk)});
  }
  return reads;
}

float scoreRead(const Stage& stage, const std::vector<std::vector<int8_t>>& vectors,
                const std::vector<std::vector<uint16_t>>& scales) {
  std::vector<maxsimd::Chunk> chunks;
  for (size_t i = 0; i < vectors.size(); ++i) chunks.push_back({vectors[i].data(), scales[i].data(), stage.shape.rows});
  return stage.score(chunks);
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  uint64_t gib = 4;
  uint32_t rows = 64, chunks = 200, rounds = 9;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--gib") gib = std::stoull(argv[++i]);
    else if (argument == "--rows") rows = uint32_t(std::stoul(argv[++i]));
    else if (argument == "--chunks") chunks = uint32_t(std::stoul(argv[++i]));
    else if (argument == "--rounds") rounds = uint32_t(std::stoul(argv[++i]));
    else path = argument;
  }
  if (access(path.c_str(), R_OK) != 0) makeFile(path, gib << 30);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  fstat(file, &status);
  const auto bytes = uint64_t(status.st_size);
  const maxsimd::Kernel& kernel = *maxsimd::findKernel("auto");
  std::vector<int8_t> vectors(size_t(queryTokens) * dim, 3);
  std::mt19937_64 random(std::random_device{}());

  Ring ring;
  std::vector<Way> ways;
  ways.push_back({"page faults", [](const Stage& s) { return s.scoreMapped(); }, {}});
  ways.push_back({"WILLNEED of vectors", [](const Stage& s) {
                    for (const uint64_t chunk : s.chosen)
                      s.advise(s.shape.vectors(chunk), uint64_t(s.shape.rows) * dim, MADV_WILLNEED);
                    return s.scoreMapped();
                  }, {}});
  ways.push_back({"WILLNEED of vectors and scales", [](const Stage& s) {
                    for (const uint64_t chunk : s.chosen) {
                      s.advise(s.shape.vectors(chunk), uint64_t(s.shape.rows) * dim, MADV_WILLNEED);
                      s.advise(s.shape.scales(chunk), uint64_t(s.shape.rows) * 2, MADV_WILLNEED);
                    }
                    return s.scoreMapped();
                  }, {}});
  ways.push_back({"the same where mincore finds a page missing", [](const Stage& s) {
                    for (const uint64_t chunk : s.chosen) {
                      s.adviseMissing(s.shape.vectors(chunk), uint64_t(s.shape.rows) * dim);
                      s.adviseMissing(s.shape.scales(chunk), uint64_t(s.shape.rows) * 2);
                    }
                    return s.scoreMapped();
                  }, {}});
  ways.push_back({"the same where one of 16 chunks is missing", [](const Stage& s) {
                    bool cold = false;
                    for (size_t i = 0; i < s.chosen.size() && !cold; i += std::max<size_t>(1, s.chosen.size() / 16))
                      cold = s.missing(s.shape.vectors(s.chosen[i]), 1);
                    for (size_t i = 0; i < s.chosen.size() && cold; ++i) {
                      s.advise(s.shape.vectors(s.chosen[i]), uint64_t(s.shape.rows) * dim, MADV_WILLNEED);
                      s.advise(s.shape.scales(s.chosen[i]), uint64_t(s.shape.rows) * 2, MADV_WILLNEED);
                    }
                    return s.scoreMapped();
                  }, {}});
#if defined(MADV_POPULATE_READ)
  for (const uint32_t threads : {8u, 32u}) {
    ways.push_back({"POPULATE_READ, " + std::to_string(threads) + " threads", [threads](const Stage& s) {
                      shared(threads, s.chosen.size(), [&](size_t i) {
                        s.advise(s.shape.vectors(s.chosen[i]), uint64_t(s.shape.rows) * dim, MADV_POPULATE_READ);
                        s.advise(s.shape.scales(s.chosen[i]), uint64_t(s.shape.rows) * 2, MADV_POPULATE_READ);
                      });
                      return s.scoreMapped();
                    }, {}});
  }
#endif
  for (const uint32_t threads : {2u, 8u, 32u}) {
    ways.push_back({"pread, " + std::to_string(threads) + " threads", [threads](const Stage& s) {
                      std::vector<std::vector<int8_t>> own;
                      std::vector<std::vector<uint16_t>> scales;
                      const auto reads = readsOf(s, own, scales);
                      shared(threads, reads.size(), [&](size_t i) {
                        if (pread(s.file, reads[i].to, reads[i].bytes, off_t(reads[i].offset)) < 0) std::perror("pread");
                      });
                      return scoreRead(s, own, scales);
                    }, {}});
  }
  if (ring.usable()) {
    ways.push_back({"io_uring", [&ring](const Stage& s) {
                      std::vector<std::vector<int8_t>> own;
                      std::vector<std::vector<uint16_t>> scales;
                      const auto reads = readsOf(s, own, scales);
                      if (!ring.readAll(s.file, reads)) std::fprintf(stderr, "not all was read\n");
                      return scoreRead(s, own, scales);
                    }, {}});
  } else {
    std::fprintf(stderr, "no io_uring here\n");
  }

  const Shape shape{rows};
  const uint64_t all = bytes / shape.documentBytes() * chunksOfDocument;
  std::printf("%u chunks of %u token vectors among %llu\n\n| in memory before | way | median ms | least | most |\n|---|---|---|---|---|\n",
              chunks, rows, static_cast<unsigned long long>(all));
  for (const double warm : {0.0, 0.5, 0.95, 1.0}) {
    for (Way& way : ways) way.ms.clear();
    for (uint32_t round = 0; round < rounds; ++round) {
      for (size_t w = 0; w < ways.size(); ++w) {
        Way& way = ways[(w + round) % ways.size()];
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        auto* const base = static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0));
        Stage stage{file, base, bytes, shape, kernel, {kernel, vectors.data(), queryTokens, dim}, {}};
        for (uint32_t c = 0; c < chunks; ++c) stage.chosen.push_back(random() % (all - chunksOfDocument));
        std::sort(stage.chosen.begin(), stage.chosen.end());
        std::vector<char> into(size_t(rows) * dim);
        for (const uint64_t chunk : stage.chosen) {
          if (double(random() % 1000) / 1000 >= warm) continue;
          // Without what the system would read ahead.
          posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
          if (pread(file, into.data(), into.size(), off_t(shape.vectors(chunk))) < 0) std::perror("pread");
          if (pread(file, into.data(), size_t(rows) * 2, off_t(shape.scales(chunk))) < 0) std::perror("pread");
        }
        posix_fadvise(file, 0, 0, POSIX_FADV_NORMAL);
        const double start = nowMs();
        const float sum = way.run(stage);
        way.ms.push_back(nowMs() - start);
        if (sum == 0.123f) std::puts("");
        munmap(base, bytes);
      }
    }
    for (Way& way : ways) {
      std::sort(way.ms.begin(), way.ms.end());
      std::printf("| %.0f%% | %s | %.2f | %.2f | %.2f |\n", warm * 100, way.name.c_str(), way.ms[way.ms.size() / 2],
                  way.ms.front(), way.ms.back());
    }
    std::fflush(stdout);
  }
  std::vector<double> single;
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
  for (int i = 0; i < 200; ++i) {
    char into[pageBytes];
    const double start = nowMs();
    if (pread(file, into, sizeof into, off_t(random() % (bytes / pageBytes) * pageBytes)) < 0) std::perror("pread");
    single.push_back(nowMs() - start);
  }
  std::sort(single.begin(), single.end());
  std::printf("\nThe storage's own: a page read alone takes %.3f ms, %.3f at the 99th of 100.\n", single[100], single[198]);
}
