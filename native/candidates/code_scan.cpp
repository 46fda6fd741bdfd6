#include "candidates/code_scan.h"

namespace maxsimd {
namespace {

/// Chunk numbers that one thread scans at a time; a multiple of a bitmap's words.
constexpr uint32_t taskChunks = 8192;
/// A code's step for 32 query tokens: a row of the table from the second-level cache.
constexpr double nanosecondsPerCode = 1.1;

}  // namespace

std::vector<Shortlisted> shortlistByCodes(const ShortlistSearch& search, uint32_t count) {
  const uint32_t tokens = search.tokens;
  struct Task {
    const CodedSegment* coded;
    uint32_t first;
  };
  std::vector<Task> tasks;
  for (const CodedSegment& coded : search.segments) {
    for (uint32_t first = 0; first < coded.selected->chunks.size(); first += taskChunks)
      tasks.push_back({&coded, first});
  }
  SumBound bound(tokens, count);
  std::vector<std::vector<Shortlisted>> parts(tasks.size());
  search.pool.parallelFor(tasks.size(), [&](size_t t) {
    search.deadline.check();
    const auto [coded, first] = tasks[t];
    const ResidualTable& table = coded->table->residual;
    thread_local std::vector<uint32_t> sums(taskChunks);
    SumCounts counts(sumCountsFor(tokens), 0);
    const Bitmap& selected = coded->selected->chunks;
    selected.forEach(first, first + taskChunks, [&, coded = coded, first = first](uint32_t chunk) {
      const uint32_t sum =
          search.loops.sumOfMaxima(table.entries, table.tokensPadded, table.codeMask, coded->codes->of(chunk));
      sums[chunk - first] = sum;
      ++counts[sum >> sumsPerCountBits];
    });
    const uint32_t least = bound.add(counts);
    selected.forEach(first, first + taskChunks, [&, coded = coded, first = first](uint32_t chunk) {
      if (sums[chunk - first] >= least) parts[t].push_back({sums[chunk - first], {coded->selection, chunk}});
    });
  });
  return bestOf(parts, tokens, count, search.agesOf);
}

double codeScanCost(std::span<const CodedSegment> segments, uint32_t tokens) {
  double codes = 0;
  for (const CodedSegment& coded : segments) {
    codes += double(coded.codes->codeCount()) * coded.selected->count / coded.codes->chunks();
  }
  return codes * ((tokens + 31) / 32) * nanosecondsPerCode;
}

}  // namespace maxsimd
