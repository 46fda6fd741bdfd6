#include "candidates/list_scan.h"

#include "candidates/nearest_centroids.h"
#include "codes/search_tuning.h"
#include "kernels/cache_lines.h"

#include <algorithm>
#include <cmath>

namespace maxsimd {
namespace {

/// The gains of the chunks of one block: the sum in the low bits, above it the last token that added to it.
class Gains {
 public:
  static constexpr uint32_t gainSumBits = 18;
  static constexpr uint32_t sumMask = (1u << gainSumBits) - 1;

  Gains() : gains_(ChunkCodes::blockChunks) {}

  // Not inlined: the compiler would look up the thread's own object again at every list.
  [[gnu::noinline]] std::span<const uint32_t> collect(const ChunkCodes& codes, uint32_t block, const Probes& probes) {
    // No more than the block has chunks: what a damaged list says of others is never read.
    const uint32_t chunks = std::min(ChunkCodes::blockChunks, codes.chunks() - block * ChunkCodes::blockChunks);
    std::fill_n(gains_.begin(), chunks, 0u);
    for (const auto& token : probes) {
      for (const Probe& probe : token) codes.loadListPlace(block, probe.code);
    }
    lists_.clear();
    for (uint32_t i = 0; i < probes.size(); ++i) {
      for (const Probe& probe : probes[i]) {
        const auto list = codes.list(block, probe.code);
        if (!list.empty()) lists_.push_back({list, (i + 1) << gainSumBits, probe.gain});
      }
    }
    for (size_t l = 0; l < lists_.size(); ++l) {
      if (l + prefetchedLists < lists_.size()) {
        const auto& ahead = lists_[l + prefetchedLists].chunks;
        prefetchLines(ahead.data(), ahead.size_bytes());
      }
      const auto [list, stamp, added] = lists_[l];
      for (const uint16_t chunk : list) {
        const uint32_t gain = gains_[chunk];
        // The first list of a token is its best one. Without a branch: whether it is the first cannot be predicted.
        const uint32_t first = (gain & ~sumMask) != stamp;
        gains_[chunk] = stamp | ((gain & sumMask) + (added & -first));
      }
    }
    for (uint32_t& gain : std::span(gains_).first(chunks)) gain &= sumMask;
    return std::span(gains_).first(chunks);
  }

 private:
  struct List {
    std::span<const uint16_t> chunks;
    uint32_t stamp;
    uint32_t added;
  };
  /// Lists are short and far apart: the memory of so many is asked for ahead.
  static constexpr size_t prefetchedLists = 8;

  std::vector<uint32_t> gains_;
  std::vector<List> lists_;
};
static_assert(uint64_t(queryTokensMax) * (entryMax + 1) <= Gains::sumMask &&
              (queryTokensMax + 1) < (1u << (32 - Gains::gainSumBits)));

}  // namespace

std::vector<Shortlisted> shortlistByLists(const ShortlistSearch& search, uint32_t count) {
  const NearestCentroids nearest(search, float(count));
  struct Task {
    const CodedSegment* coded;
    uint32_t block;
  };
  std::vector<Task> tasks;
  for (const CodedSegment& coded : search.segments) {
    // Records at the end that were never born are not among the selected.
    const uint32_t blocks = (coded.selected->chunks.size() + ChunkCodes::blockChunks - 1) / ChunkCodes::blockChunks;
    for (uint32_t block = 0; block < blocks; ++block) tasks.push_back({&coded, block});
  }
  BestOfParts best(search.tokens, count, tasks.size());
  search.pool.parallelFor(tasks.size(), [&](size_t t) {
    search.deadline.check();
    const auto [coded, block] = tasks[t];
    thread_local Gains ownGains;
    best.add(t, *coded, block * ChunkCodes::blockChunks, ownGains.collect(*coded->codes, block, nearest.probesOf(*coded)));
  });
  return best.best(search.agesOf);
}

uint32_t listsMeeting(const ShortlistSearch& search, uint32_t count) {
  double met = 0;
  for (const CodedSegment& coded : search.segments) {
    const ChunkCodes& codes = *coded.codes;
    met += double(codes.codeCount()) / codes.chunks() * coded.selected->count / codes.codebook().count();
  }
  return uint32_t(std::ceil(count / met));
}

bool listsAreCheaper(const ShortlistSearch& search, uint32_t count) {
  double selected = 0, chunks = 0, codes = 0, centroids = 0;
  for (const CodedSegment& coded : search.segments) {
    centroids = std::max(centroids, double(coded.codes->codebook().count()));
    selected += coded.selected->count;
    chunks += coded.codes->chunks();
    codes += double(coded.codes->codeCount()) * coded.selected->count / coded.codes->chunks();
  }
  // Lists name chunks that are not selected, too. A scan of codes looks at all tokens of a register together.
  const double visits = double(count) * search.tokens * chunks / selected;
  const double lists = visits * SearchTuning::codesPerVisit + centroids * search.tokens * SearchTuning::codesPerCentroid;
  return lists < codes * (tableTokens(search.tokens) / double(fewTokens));
}

}  // namespace maxsimd
