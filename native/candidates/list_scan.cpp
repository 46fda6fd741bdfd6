#include "candidates/list_scan.h"

#include "codes/search_tuning.h"
#include "kernels/cache_lines.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

namespace maxsimd {
namespace {

struct Probe {
  uint32_t code;
  /// The amount that a chunk on this list adds to the partial sum, beyond a chunk that is on none of the token's lists.
  uint8_t gain;
};
/// For each token the lists that it walks, best first.
using Probes = std::vector<std::vector<Probe>>;

/// For each token the least entry that may be among its `lists` highest. Lower entries need not be collected. It is
/// estimated from one centroid in `sampledEvery`. Padding tokens have 0.
AlignedVector<uint8_t> leastEntries(const ResidualTable& table, uint32_t tokens, uint32_t lists) {
  constexpr uint32_t every = SearchTuning::sampledEvery;
  std::vector<std::array<uint32_t, entryMax + 1>> counts(tokens);
  for (size_t k = 0; k <= table.codeMask; k += every) {
    const uint8_t* row = table.entries + k * table.tokensPadded;
    for (uint32_t i = 0; i < tokens; ++i) ++counts[i][row[i]];
  }
  // More than the share of the sample, because a sample errs.
  const double wanted = lists / std::sqrt(double(every));
  AlignedVector<uint8_t> least(table.tokensPadded, 0);
  for (uint32_t i = 0; i < tokens; ++i) {
    uint32_t entry = entryMax;
    for (uint32_t found = counts[i][entry]; found < wanted && entry > 1;) found += counts[i][--entry];
    least[i] = uint8_t(entry);
  }
  return least;
}

/// The centroids with the `lists` highest entries for each token. A token has fewer if its other entries are 0.
Probes nearestCentroids(const ShortlistSearch& search, const ResidualTable& table, uint32_t lists) {
  const uint32_t tokens = search.tables.tokens();
  std::vector<TableHit> hits;
  search.loops.collectHits(table.entries, table.codeMask + 1, table.tokensPadded,
                           leastEntries(table, tokens, lists).data(), hits);
  std::vector<std::vector<TableHit>> hitsOf(tokens);
  for (const TableHit& hit : hits) hitsOf[hit.token].push_back(hit);
  Probes probes(tokens);
  for (uint32_t i = 0; i < tokens; ++i) {
    auto& own = hitsOf[i];
    std::sort(own.begin(), own.end(), [](const TableHit& a, const TableHit& b) {
      return a.entry != b.entry ? a.entry > b.entry : a.code < b.code;
    });
    own.resize(std::min<size_t>(own.size(), lists));
    const auto unmet = own.empty() ? uint8_t(0) : uint8_t((own.back().entry - 1) * SearchTuning::unmetPart);
    for (const TableHit& hit : own) probes[i].push_back({hit.code, uint8_t(hit.entry - unmet)});
  }
  return probes;
}

/// The partial sums of the chunks of one block. The low bits of a value have the sum. The high bits have the last token
/// that added to it, so that each token adds once.
class Gains {
 public:
  static constexpr uint32_t gainSumBits = 18;
  static constexpr uint32_t sumMask = (1u << gainSumBits) - 1;

  Gains() : gains_(ChunkCodes::blockChunks) {}

  // Not inlined, because then the compiler would look up the thread-local object again for every list.
  [[gnu::noinline]] std::span<const uint32_t> collect(const ChunkCodes& codes, uint32_t block, const Probes& probes) {
    // A damaged list may name chunks beyond the end of the block. Their sums are never read.
    const uint32_t chunks = std::min(ChunkCodes::blockChunks, codes.chunks() - block * ChunkCodes::blockChunks);
    std::fill_n(gains_.begin(), chunks, 0u);
    for (const auto& token : probes) {
      for (const Probe& probe : token) codes.loadListPlace(block, probe.code);
    }
    for (uint32_t i = 0; i < probes.size(); ++i) {
      const uint32_t stamp = (i + 1) << gainSumBits;
      for (size_t p = 0; p < probes[i].size(); ++p) {
        if (p + prefetchedLists < probes[i].size()) {
          const auto ahead = codes.list(block, probes[i][p + prefetchedLists].code);
          prefetchLines(ahead.data(), ahead.size_bytes());
        }
        const auto [code, added] = probes[i][p];
        for (const uint16_t chunk : codes.list(block, code)) {
          const uint32_t gain = gains_[chunk];
          // Only the first list of a token that names the chunk counts, because it is the best one. There is no branch
          // here, because a processor could not predict it.
          const uint32_t first = (gain & ~sumMask) != stamp;
          gains_[chunk] = stamp | ((gain & sumMask) + (added & -first));
        }
      }
    }
    for (uint32_t& gain : std::span(gains_).first(chunks)) gain &= sumMask;
    return std::span(gains_).first(chunks);
  }

 private:
  /// Lists are short and far apart in memory, so the next few are prefetched.
  static constexpr size_t prefetchedLists = 4;

  std::vector<uint32_t> gains_;
};
static_assert(uint64_t(queryTokensMax) * entryMax <= Gains::sumMask &&
              (queryTokensMax + 1) < (1u << (32 - Gains::gainSumBits)));

}  // namespace

std::vector<Shortlisted> shortlistByLists(const ShortlistSearch& search, uint32_t count, uint32_t lists) {
  std::vector<Probes> probes(search.tables.size());
  search.pool.parallelFor(probes.size(),
                          [&](size_t b) { probes[b] = nearestCentroids(search, search.tables.of(b).residual, lists); });
  struct Task {
    const CodedSegment* coded;
    uint32_t block;
  };
  std::vector<Task> tasks;
  for (const CodedSegment& coded : search.segments) {
    // The bitmap may be shorter than the segment: records at the end that no commit names are not in it.
    const uint32_t blocks = (coded.selected->chunks.size() + ChunkCodes::blockChunks - 1) / ChunkCodes::blockChunks;
    for (uint32_t block = 0; block < blocks; ++block) tasks.push_back({&coded, block});
  }
  std::vector<std::vector<Shortlisted>> parts(tasks.size());
  // Once a block has `count` chunks, a chunk below its least sum cannot be among the `count` best of all blocks.
  std::atomic<uint32_t> least{1};
  search.pool.parallelFor(tasks.size(), [&](size_t t) {
    search.deadline.check();
    const auto [coded, block] = tasks[t];
    const uint32_t first = block * ChunkCodes::blockChunks;
    thread_local Gains ownGains;
    const auto gains = ownGains.collect(*coded->codes, block, probes[coded->codebook]);
    const Bitmap& selected = coded->selected->chunks;
    const uint32_t known = least;
    for (uint32_t c = 0; c < gains.size(); ++c) {
      if (gains[c] >= known && selected.test(first + c)) parts[t].push_back({gains[c], {coded->selection, first + c}});
    }
    // Two threads may write it at once. Either value is a correct bound.
    if (const uint32_t own = dropWorst(parts[t], count); own > known) least = own;
  });
  std::vector<Shortlisted> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return bestBySum(std::move(all), count, search.agesOf);
}

uint32_t listsMeeting(const ShortlistSearch& search, uint32_t count) {
  double met = 0;
  for (const auto& [selection, selected, codes, codebook] : search.segments)
    met += double(codes->codeCount()) / codes->chunks() * selected->count / codes->codebook().count();
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
  // Lists also name chunks that are not selected. A scan of codes compares a register full of query tokens at once.
  const double tokens = search.tables.tokens();
  const double lists = double(count) * tokens * chunks / selected * SearchTuning::codesPerVisit +
                       centroids * tokens * SearchTuning::codesPerCentroid;
  return lists < codes * (tableTokens(search.tables.tokens()) / tableLanes);
}

}  // namespace maxsimd
