#include "candidates/list_scan.h"

#include "kernels/cache_lines.h"
#include "candidates/code_scan.h"

#include <algorithm>
#include <array>
#include <bit>

namespace maxsimd {
namespace {

/// What a walk costs beside a scan of all codes, fitted to short, middle and long chunks: choosing lists, each visit, finding
/// the best sums, and codes that lie here and there.
constexpr double nanosecondsOfChoice = 300'000;
constexpr double nanosecondsPerVisit = 4;
constexpr double nanosecondsPerChunk = 1;
constexpr double scatteredCodes = 2;
constexpr uint32_t entryValues = entryMax + 1;
/// One centroid in so many says at which entry a token's lists hold enough; of many centroids, so many in all.
constexpr uint32_t sampledEvery = 16;
constexpr uint32_t sampledCentroids = 8192;
/// Centroids whose entries one thread looks through at a time.
constexpr uint32_t taskCentroids = 16384;
/// Lists are collected down to the entry at which the sample meets so many times the visits.
constexpr float sampleMargin = 5;

/// Chunks that say what a chunk on none of a token's lists is like.
constexpr uint32_t sampledChunks = 128;

using Visits = std::vector<std::array<float, entryValues>>;

/// The highest entry, at least 1, from which on `wanted` chunks are met: of each token, u8 [tokens].
std::vector<uint8_t> entriesMeeting(const Visits& met, float wanted) {
  std::vector<uint8_t> least;
  for (const auto& token : met) {
    uint32_t entry = entryValues - 1;
    for (float sum = token[entry]; sum < wanted && entry > 1;) sum += token[--entry];
    least.push_back(uint8_t(entry));
  }
  return least;
}

/// Segments with the same table, and what a list of theirs is expected to meet.
struct ListedSegments {
  const CodebookTable* table;
  uint32_t centroids;
  struct Lengths {
    std::span<const uint32_t> ofLists;
    float selected;
  };
  std::vector<Lengths> segments;

  /// Selected chunks on the lists of a centroid, were they spread evenly.
  float met(uint32_t centroid) const {
    float sum = 0;
    for (const Lengths& lengths : segments) sum += float(lengths.ofLists[centroid]) * lengths.selected;
    return sum;
  }
};

std::vector<ListedSegments> groupByTable(std::span<const CodedSegment> segments) {
  std::vector<ListedSegments> groups;
  for (const CodedSegment& coded : segments) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.table == coded.table; });
    const std::span<const uint32_t> lengths = coded.codes->listLengths();
    if (group == groups.end())
      group = groups.insert(groups.end(), {coded.table, uint32_t(lengths.size()), {}});
    group->segments.push_back({lengths, float(coded.selected->count) / float(coded.codes->chunks())});
  }
  return groups;
}

/// Bounds below which no list is worth collecting: an estimate from some of the centroids.
std::vector<uint8_t> estimateBounds(const std::vector<ListedSegments>& groups, uint32_t tokens, float visits) {
  Visits met(tokens);
  for (const ListedSegments& group : groups) {
    const ResidualTable& table = group.table->residual;
    const uint32_t every = std::max(sampledEvery, group.centroids / sampledCentroids);
    for (uint32_t k = 0; k < group.centroids; k += every) {
      const uint8_t* row = table.entries + size_t(k) * table.tokensPadded;
      const float expected = group.met(k) * float(every);
      for (uint32_t i = 0; i < tokens; ++i) met[i][row[i]] += expected;
    }
  }
  return entriesMeeting(met, visits * sampleMargin);
}

/// What a token's entry counts as at a chunk that none of its lists meets, below least[i]. The mean of such chunks says
/// too much against the best of them, `least` too little: the middle of both finds most.
std::vector<uint8_t> entriesOfUnmet(const ShortlistSearch& search, const std::vector<uint8_t>& least) {
  const std::span<const CodedSegment> segments = search.segments;
  const size_t tokens = least.size();
  const auto share = uint32_t(sampledChunks / segments.size() + 1);
  std::vector<uint32_t> sums(tokens, 0), counts(tokens, 0);
  std::vector<uint8_t> best;
  for (const CodedSegment& coded : segments) {
    const ResidualTable& table = coded.table->residual;
    const uint32_t chunks = coded.codes->chunks(), sampled = std::min(chunks, share);
    best.resize(table.tokensPadded);
    const auto sample = [=](uint32_t s) { return uint32_t(uint64_t(s) * chunks / sampled); };
    for (uint32_t s = 0; s < sampled; ++s) coded.codes->loadCodes(sample(s));
    for (uint32_t s = 0; s < sampled; ++s) {
      const CodeSpan codes = coded.codes->of(sample(s));
      search.loops.highestOfCodes(table.entries, table.codeMask, codes, table.tokensPadded, best.data());
      for (size_t i = 0; i < tokens; ++i) {
        const uint32_t isUnmet = best[i] < least[i];
        sums[i] += best[i] * isUnmet;
        counts[i] += isUnmet;
      }
    }
  }
  std::vector<uint8_t> unmet;
  for (size_t i = 0; i < tokens; ++i) {
    const uint32_t mean = counts[i] > 0 ? sums[i] / counts[i] : least[i];
    unmet.push_back(uint8_t(std::min((mean + least[i]) / 2, least[i] - 1u)));
  }
  return unmet;
}

struct Probe {
  uint32_t code;
  /// What it is better than being on none of the token's lists.
  uint8_t gain;
};
/// The lists that each token walks, best first.
using Probes = std::vector<std::vector<Probe>>;

/// Every entry of the group that is no less than its token's bound, centroid by centroid.
std::vector<TableHit> hitsOf(const ShortlistSearch& search, const ListedSegments& group,
                             const std::vector<uint8_t>& bounds) {
  const ResidualTable& table = group.table->residual;
  std::vector<std::vector<TableHit>> parts((group.centroids + taskCentroids - 1) / taskCentroids);
  search.pool.parallelFor(parts.size(), [&](size_t p) {
    const auto first = uint32_t(p) * taskCentroids;
    search.loops.collectHits(table.entries + size_t(first) * table.tokensPadded,
                             std::min(taskCentroids, group.centroids - first), table.tokensPadded, bounds.data(), parts[p]);
    for (TableHit& hit : parts[p]) hit.code += first;
  });
  std::vector<TableHit> hits = std::move(parts.front());
  for (size_t p = 1; p < parts.size(); ++p) hits.insert(hits.end(), parts[p].begin(), parts[p].end());
  return hits;
}

/// Chooses the probes of each group.
std::vector<Probes> chooseProbes(const ShortlistSearch& search, const std::vector<ListedSegments>& groups,
                                 float visits) {
  const uint32_t tokens = search.tokens;
  std::vector<uint8_t> bounds = estimateBounds(groups, tokens, visits);
  bounds.resize(groups.front().table->residual.tokensPadded, 0);
  std::vector<std::vector<TableHit>> hits(groups.size());
  std::vector<uint8_t> least;
  // Twice at most: where the sample knew too little, everything above 0 is collected.
  for (bool again = true; again;) {
    Visits met(tokens);
    for (size_t g = 0; g < groups.size(); ++g) {
      hits[g] = hitsOf(search, groups[g], bounds);
      // Hits come centroid by centroid.
      uint32_t code = UINT32_MAX;
      float expected = 0;
      for (const TableHit& hit : hits[g]) {
        if (hit.code != code) expected = groups[g].met(code = hit.code);
        met[hit.token][hit.entry] += expected;
      }
    }
    least = entriesMeeting(met, visits);
    again = false;
    for (uint32_t i = 0; i < tokens; ++i) {
      if (least[i] >= bounds[i]) continue;
      bounds[i] = 1;
      again = true;
    }
  }
  const std::vector<uint8_t> unmet = entriesOfUnmet(search, least);
  std::vector<Probes> probes(groups.size(), Probes(tokens));
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const TableHit& hit : hits[g]) {
      if (hit.entry < least[hit.token]) continue;
      probes[g][hit.token].push_back({hit.code, uint8_t(hit.entry - unmet[hit.token])});
    }
    for (auto& token : probes[g]) {
      std::sort(token.begin(), token.end(),
                [](const Probe& a, const Probe& b) { return a.gain != b.gain ? a.gain > b.gain : a.code < b.code; });
    }
  }
  return probes;
}

/// What the chunks of one block gain: the sum in the low bits, above it the last token that added to it. One a thread; what
/// it does is not inlined, for the compiler would ask for the thread's own again at every list.
class Gains {
 public:
  static constexpr uint32_t gainSumBits = 18;
  static constexpr uint32_t sumMask = (1u << gainSumBits) - 1;

  Gains() : gains_(ChunkCodes::blockChunks) {}

  [[gnu::noinline]] void collect(const ChunkCodes& codes, uint32_t block, const Probes& probes) {
    // No more than the block has chunks: what a damaged list says of others is never read.
    std::fill_n(gains_.begin(), roundUp(std::min(ChunkCodes::blockChunks, codes.chunks() - block * ChunkCodes::blockChunks)),
                0u);
    lists_.clear();
    for (const auto& token : probes) {
      for (const Probe& probe : token) codes.loadListPlace(block, probe.code);
    }
    for (uint32_t i = 0; i < probes.size(); ++i) {
      for (const Probe& probe : probes[i]) {
        const auto chunks = codes.list(block, probe.code);
        if (!chunks.empty()) lists_.push_back({chunks, (i + 1) << gainSumBits, probe.gain});
      }
    }
    for (size_t l = 0; l < lists_.size(); ++l) {
      if (l + prefetchedLists < lists_.size()) {
        const auto& ahead = lists_[l + prefetchedLists].chunks;
        prefetchLines(ahead.data(), ahead.size_bytes());
      }
      const auto [chunks, stamp, added] = lists_[l];
      for (const uint16_t chunk : chunks) {
        const uint32_t gain = gains_[chunk];
        // The first list of a token is its best one. Without a branch: whether it is the first cannot be predicted.
        const uint32_t first = (gain & ~sumMask) != stamp;
        gains_[chunk] = stamp | ((gain & sumMask) + (added & -first));
      }
    }
  }

  /// The selected chunks among the best, in order: from `first` on, where the block starts.
  [[gnu::noinline]] std::vector<Shortlisted> best(const CodedSegment& coded, uint32_t first, SumBound& bound,
                                                  const CodeLoops& loops) {
    const Bitmap& selected = coded.selected->chunks;
    const std::span sums(gains_.data(), roundUp(std::min(ChunkCodes::blockChunks, selected.size() - first)));
    for (uint32_t& sum : sums) sum &= sumMask;
    return bestOfBlock({sums, selected, first, coded.selection}, bound, loops);
  }

 private:
  struct List {
    std::span<const uint16_t> chunks;
    uint32_t stamp;
    uint32_t added;
  };
  /// Lists are short and far apart: the memory of so many is asked for ahead.
  static constexpr size_t prefetchedLists = 8;

  static uint32_t roundUp(uint32_t chunks) { return (chunks + Bitmap::wordBits - 1) & ~(Bitmap::wordBits - 1); }

  std::vector<uint32_t> gains_;
  std::vector<List> lists_;
};
static_assert(uint64_t(queryTokensMax) * entryValues <= Gains::sumMask &&
              (queryTokensMax + 1) < (1u << (32 - Gains::gainSumBits)));

}  // namespace

std::vector<Shortlisted> shortlistByLists(const ShortlistSearch& search, const ListBreadth& breadth) {
  const std::span<const CodedSegment> segments = search.segments;
  const uint32_t tokens = search.tokens;
  const std::vector<ListedSegments> groups = groupByTable(segments);
  const std::vector<Probes> probes = chooseProbes(search, groups, breadth.visits);
  struct Task {
    const CodedSegment* coded;
    const Probes* probes;
    uint32_t block;
  };
  std::vector<Task> tasks;
  for (const CodedSegment& coded : segments) {
    size_t g = 0;
    while (groups[g].table != coded.table) ++g;
    // Records at the end that were never born are not among the selected.
    const uint32_t blocks = (coded.selected->chunks.size() + ChunkCodes::blockChunks - 1) / ChunkCodes::blockChunks;
    for (uint32_t block = 0; block < blocks; ++block) tasks.push_back({&coded, &probes[g], block});
  }
  SumBound bound(tokens, breadth.chunks);
  std::vector<std::vector<Shortlisted>> parts(tasks.size());
  search.pool.parallelFor(tasks.size(), [&](size_t t) {
    search.deadline.check();
    const auto [coded, walked, block] = tasks[t];
    thread_local Gains ownGains;
    Gains& gains = ownGains;
    gains.collect(*coded->codes, block, *walked);
    parts[t] = gains.best(*coded, block * ChunkCodes::blockChunks, bound, search.loops);
  });
  return bestOf(parts, tokens, breadth.chunks, search.agesOf);
}

double listScanCost(std::span<const CodedSegment> segments, uint32_t tokens, const ListBreadth& breadth) {
  double selected = 0, chunks = 0;
  for (const CodedSegment& coded : segments) {
    selected += coded.selected->count;
    chunks += coded.codes->chunks();
  }
  return nanosecondsOfChoice + double(breadth.visits) * tokens * chunks / selected * nanosecondsPerVisit +
         chunks * nanosecondsPerChunk +
         codeScanCost(segments, tokens) * scatteredCodes * std::min(1.0, breadth.chunks / selected);
}

}  // namespace maxsimd
