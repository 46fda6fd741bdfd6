#include "runtime/engine.h"

#include "runtime/deadline.h"
#include "runtime/kernel_check.h"
#include "runtime/query.h"
#include "files/error.h"

#include <time.h>

#include <algorithm>
#include <string>
#include <thread>

namespace maxsimd {
namespace {

constexpr double budgetMs = 2.0;
constexpr uint32_t budgetTokens = 32;
constexpr size_t scoreBlock = 8;

/// Components of document vectors per `budgetMs` of processor time: the best sixteenth of two passes over 16 MiB,
/// because other processes may disturb the measurement. Like the chunks of a search, 16 MiB exceed the caches of a
/// core.
uint64_t measureRate(const Kernel& kernel) {
  constexpr uint32_t dim = 128, rowsPerChunk = 32, partChunks = 256;
  constexpr size_t chunkBytes = size_t(dim) * rowsPerChunk, chunkCount = (16 << 20) / chunkBytes;
  std::vector<int8_t> vectors(chunkBytes * chunkCount + readPaddingBytes);
  for (size_t i = 0; i < vectors.size(); ++i) vectors[i] = int8_t(i * 31);
  const std::vector<uint16_t> scales(rowsPerChunk + readPaddingBytes, 0x1c00);
  std::vector<Chunk> chunks;
  for (size_t c = 0; c < chunkCount; ++c)
    chunks.push_back({vectors.data() + c * chunkBytes, scales.data(), rowsPerChunk});
  const Query query(kernel, vectors.data(), budgetTokens, dim);
  float scores[partChunks];
  kernel.maxsim(query.packed(), chunks.data(), 1, scores);
  double best = 0, all = 0;
  for (size_t done = 0; done < 2 * chunkCount && all < 2 * budgetMs; done += partChunks) {
    const double start = threadCpuMs();
    kernel.maxsim(query.packed(), chunks.data() + done % chunkCount, partChunks, scores);
    const double milliseconds = threadCpuMs() - start;
    all += milliseconds;
    best = std::max(best, double(partChunks * chunkBytes) / milliseconds);
  }
  return uint64_t(best * budgetMs);
}

uint32_t cores() { return std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace

double threadCpuMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
}

Engine::Engine(uint32_t threads, std::string_view kernel)
    : kernel_(trustedKernel(kernel)),
      rate_(measureRate(kernel_)),
      compute_(threads == 0 ? cores() : threads),
      files_(std::max(2u, compute_.threads() / 2)),
      background_(1, 10),
      columns_(1, 10) {}

std::vector<Chunk> ScoreRequest::chunks() const {
  std::vector<Chunk> chunks;
  size_t row = 0;
  for (const uint32_t rows : chunkRows) {
    chunks.push_back({vectors.data() + row * shape.bytes(), scales.data() + row, rows});
    row += rows;
  }
  return chunks;
}

ScoreOutcome score(Engine& engine, const ScoreRequest& request) {
  const Kernel& kernel = engine.kernel();
  const Query query(kernel, request.query, request.offsets, request.shape);
  const PackedQuery& packed = query.packed();
  const std::vector<Chunk> chunks = request.chunks();
  ScoreOutcome outcome;
  outcome.scores.resize(chunks.size());
  engine.compute().parallelFor((chunks.size() + scoreBlock - 1) / scoreBlock, [&](size_t b) {
    const size_t first = b * scoreBlock;
    kernel.maxsim(packed, chunks.data() + first, std::min(scoreBlock, chunks.size() - first),
                  outcome.scores.data() + first);
  });
  if (!request.components) return outcome;
  std::vector<float> similarities(packed.tokensPadded);
  std::vector<uint32_t> rows(packed.tokensPadded);
  for (const Chunk& chunk : chunks) {
    kernel.best(packed, chunk, similarities.data(), rows.data());
    for (uint32_t i = 0; i < packed.tokens; ++i) {
      outcome.similarities.push_back(similarities[i] * packed.scales[i] + packed.offsets[i]);
      outcome.documentTokens.push_back(rows[i]);
    }
  }
  return outcome;
}

KernelTiming timeKernel(const Engine& engine, const ScoreRequest& request, const std::vector<uint32_t>& order,
                        uint32_t repeats) {
  const Query query(engine.kernel(), request.query, request.offsets, request.shape);
  const std::vector<Chunk> all = request.chunks();
  std::vector<Chunk> chunks;
  for (const uint32_t c : order) chunks.push_back(all[c]);
  KernelTiming timing{0, 0, std::vector<float>(chunks.size())};
  for (uint32_t r = 0; r < repeats; ++r) {
    const auto start = Clock::now();
    const double cpuStart = threadCpuMs();
    engine.kernel().maxsim(query.packed(), chunks.data(), chunks.size(), timing.scores.data());
    const double cpu = threadCpuMs() - cpuStart;
    const double wall = millisecondsBetween(start, Clock::now());
    timing.wallMs = r == 0 ? wall : std::min(timing.wallMs, wall);
    timing.cpuMs = r == 0 ? cpu : std::min(timing.cpuMs, cpu);
  }
  return timing;
}

}  // namespace maxsimd
