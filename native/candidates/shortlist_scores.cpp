#include "candidates/shortlist_scores.h"

#include <algorithm>
#include <cstring>

namespace maxsimd {
namespace {

/// Chunks of the shortlist that one thread looks at together.
constexpr size_t blockShortlisted = 128;
/// So far ahead the memory of token vectors is asked for.
constexpr size_t aheadOfMemory = 2;

/// The segments by their position among the selections.
std::vector<const CodedSegment*> bySelection(std::span<const CodedSegment> segments) {
  std::vector<const CodedSegment*> places;
  for (const CodedSegment& coded : segments) {
    places.resize(std::max<size_t>(places.size(), coded.selection + 1));
    places[coded.selection] = &coded;
  }
  return places;
}

/// `look(first, last)` at all of the shortlist in blocks, on all threads.
template <typename Look>
void forEachBlock(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist, const Look& look) {
  search.pool.parallelFor((shortlist.size() + blockShortlisted - 1) / blockShortlisted, [&](size_t b) {
    search.deadline.check();
    look(b * blockShortlisted, std::min(shortlist.size(), (b + 1) * blockShortlisted));
  });
}

/// Asks for what a look at these chunks will read. For all of them at once: they lie far apart, and the processor waits for
/// several at a time.
void loadAll(const std::vector<const CodedSegment*>& places, std::span<const Shortlisted> shortlist,
             void (ChunkCodes::*load)(uint32_t) const) {
  for (const auto& [sum, candidate] : shortlist) (places[candidate.selection]->codes->*load)(candidate.chunk);
}

/// The token vectors of a chunk that may be its best for a query token: the residual codes of the others are not read.
struct ChosenRows {
  std::vector<ChosenRow> rows;
  uint32_t count = 0;
  std::vector<uint8_t> own;

  void choose(const ShortlistSearch& search, const CodedSegment& coded, uint32_t chunk, const uint8_t* highest) {
    const ResidualTable& table = coded.table->residual;
    const CodeSpan codes = coded.codes->of(chunk);
    if (highest == nullptr) {
      own.resize(table.tokensPadded);
      search.loops.highestOfCodes(table.entries, table.codeMask, codes, table.tokensPadded, own.data());
      highest = own.data();
    }
    rows.resize(std::max<size_t>(rows.size(), coded.codes->rows(chunk) + rowsTogether));
    count = search.loops.chooseRows(
        table, {codes, coded.codes->runs(chunk), coded.codes->residuals(chunk), coded.codes->rows(chunk)}, highest, rows.data());
  }
};

}  // namespace

std::vector<Shortlisted> bestByEntries(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count,
                                       HighestEntries& highest) {
  const size_t stride = search.segments.front().table->residual.tokensPadded;
  // The memory of an earlier search is taken as it is.
  highest.resize(std::max(highest.size(), shortlist.size() * stride));
  const auto places = bySelection(search.segments);
  forEachBlock(search, shortlist, [&](size_t first, size_t last) {
    const std::span<const Shortlisted> block(shortlist.data() + first, last - first);
    loadAll(places, block, &ChunkCodes::loadCodesPlace);
    loadAll(places, block, &ChunkCodes::loadCodes);
    for (size_t i = first; i < last; ++i) {
      const Candidate& candidate = shortlist[i].candidate;
      const CodedSegment& coded = *places[candidate.selection];
      const ResidualTable& table = coded.table->residual;
      shortlist[i].sum = search.loops.highestOfCodes(table.entries, table.codeMask, coded.codes->of(candidate.chunk),
                                                     table.tokensPadded, highest.data() + i * stride);
    }
  });
  std::vector<Shortlisted> best = bestOf({shortlist}, search.tokens, count, search.agesOf);
  const auto isSame = [](const Candidate& a, const Candidate& b) { return a.selection == b.selection && a.chunk == b.chunk; };
  size_t from = 0;
  for (size_t to = 0; to < best.size(); ++to, ++from) {
    while (!isSame(shortlist[from].candidate, best[to].candidate)) ++from;
    std::memmove(highest.data() + to * stride, highest.data() + from * stride, stride);
  }
  return best;
}

std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist,
                                              const HighestEntries& highest) {
  const size_t stride = search.segments.front().table->residual.tokensPadded;
  std::vector<ScoredChunk> scored(shortlist.size());
  const auto places = bySelection(search.segments);
  forEachBlock(search, shortlist, [&](size_t first, size_t last) {
    const std::span<const Shortlisted> block(shortlist.data() + first, last - first);
    loadAll(places, block, &ChunkCodes::loadDetailsPlace);
    loadAll(places, block, &ChunkCodes::loadRuns);
    // What is chosen of a chunk is read two chunks later, when it has come from memory.
    ChosenRows waiting[aheadOfMemory];
    for (size_t i = first; i < last + aheadOfMemory; ++i) {
      ChosenRows& chosen = waiting[i % aheadOfMemory];
      if (i >= first + aheadOfMemory) {
        const Candidate& candidate = shortlist[i - aheadOfMemory].candidate;
        const CodedSegment& coded = *places[candidate.selection];
        const uint32_t sum = search.loops.sumOfResidualMaxima(
            coded.table->residual, coded.codes->residuals(candidate.chunk), chosen.rows.data(), chosen.count);
        scored[i - aheadOfMemory] = {candidate, coded.table->residualBase + coded.table->residualStep * float(sum)};
      }
      if (i >= last) continue;
      const Candidate& candidate = shortlist[i].candidate;
      chosen.choose(search, *places[candidate.selection], candidate.chunk,
                    highest.empty() ? nullptr : highest.data() + i * stride);
    }
  });
  return scored;
}

}  // namespace maxsimd
