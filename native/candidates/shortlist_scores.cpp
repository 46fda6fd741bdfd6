#include "candidates/shortlist_scores.h"

#include <algorithm>
#include <map>

namespace maxsimd {
namespace {

/// The segments by their position among the selections.
std::vector<const CodedSegment*> bySelection(std::span<const CodedSegment> segments) {
  std::vector<const CodedSegment*> places;
  for (const CodedSegment& coded : segments) {
    places.resize(std::max<size_t>(places.size(), coded.selection + 1));
    places[coded.selection] = &coded;
  }
  return places;
}

/// `look(first, last, segments)` at all of the shortlist in blocks, on all threads.
template <typename Look>
void forEachBlock(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist, const Look& look) {
  /// Chunks that one thread looks at together.
  constexpr size_t block = 128;
  const auto segments = bySelection(search.segments);
  search.pool.parallelFor((shortlist.size() + block - 1) / block, [&](size_t b) {
    search.deadline.check();
    look(b * block, std::min(shortlist.size(), (b + 1) * block), segments);
  });
}

/// Asks for what a look at these chunks will read. For all of them at once: they lie far apart, and the processor waits for
/// several at a time.
void loadAll(const std::vector<const CodedSegment*>& segments, std::span<const Shortlisted> shortlist,
             void (ChunkCodes::*load)(uint32_t) const) {
  for (const auto& [sum, candidate] : shortlist) (segments[candidate.selection]->codes->*load)(candidate.chunk);
}

/// Sees to it that the codes of these chunks have entries.
void addEntries(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist) {
  const auto segments = bySelection(search.segments);
  std::map<const CodebookTable*, Bitmap> wanted;
  for (const CodedSegment& coded : search.segments)
    wanted.try_emplace(coded.table, coded.table->residual.codeMask + 1);
  loadAll(segments, shortlist, &ChunkCodes::loadCodesPlace);
  loadAll(segments, shortlist, &ChunkCodes::loadCodes);
  for (const auto& [sum, candidate] : shortlist) {
    const CodedSegment& coded = *segments[candidate.selection];
    const CodeSpan codes = coded.codes->of(candidate.chunk);
    Bitmap& own = wanted.at(coded.table);
    for (uint32_t k = 0; k < codes.count; ++k) own.set(codes.at(k, coded.table->residual.codeMask));
  }
  for (const auto& [table, centroids] : wanted) search.onDemand->addMissing(*table, centroids);
}

/// The token vectors of a chunk that may be its best for a query token: the residual codes of the others are not read.
struct ChosenRows {
  std::vector<ChosenRow> rows;
  uint32_t count = 0;
  std::vector<uint8_t> highest;

  void choose(const CodeLoops& loops, const CodedSegment& coded, uint32_t chunk) {
    const ResidualTable& table = coded.table->residual;
    const ChunkCodes& codes = *coded.codes;
    highest.resize(table.tokensPadded);
    loops.highestOfCodes(table, codes.of(chunk), highest.data());
    rows.resize(std::max<size_t>(rows.size(), codes.rows(chunk)));
    count = loops.chooseRows(table, {codes.of(chunk), codes.runs(chunk), codes.residuals(chunk), codes.rows(chunk)},
                             highest.data(), rows.data());
  }
};

}  // namespace

std::vector<Shortlisted> shortlistByCodes(const ShortlistSearch& search, uint32_t count) {
  /// Chunks that one thread scans at a time.
  constexpr uint32_t taskChunks = 8192;
  struct Task {
    const CodedSegment* coded;
    uint32_t first;
  };
  std::vector<Task> tasks;
  for (const CodedSegment& coded : search.segments) {
    for (uint32_t first = 0; first < coded.selected->chunks.size(); first += taskChunks) tasks.push_back({&coded, first});
  }
  BestOfParts best(search.tokens, count, tasks.size());
  search.pool.parallelFor(tasks.size(), [&](size_t t) {
    search.deadline.check();
    const CodedSegment& coded = *tasks[t].coded;
    const uint32_t first = tasks[t].first;
    const Bitmap& selected = coded.selected->chunks;
    std::vector<uint32_t> sums(std::min(taskChunks, selected.size() - first), 0);
    selected.forEach(first, first + uint32_t(sums.size()), [&](uint32_t chunk) {
      // 0 stands for a chunk that is not selected.
      sums[chunk - first] = 1 + search.loops.highestOfCodes(coded.table->residual, coded.codes->of(chunk), nullptr);
    });
    best.add(t, coded, first, sums);
  });
  return best.best(search.agesOf);
}

std::vector<Shortlisted> bestByEntries(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count) {
  if (search.onDemand != nullptr) addEntries(search, shortlist);
  forEachBlock(search, shortlist, [&](size_t first, size_t last, const auto& segments) {
    const std::span<Shortlisted> block(shortlist.data() + first, last - first);
    loadAll(segments, block, &ChunkCodes::loadCodesPlace);
    loadAll(segments, block, &ChunkCodes::loadCodes);
    for (auto& [sum, candidate] : block) {
      const CodedSegment& coded = *segments[candidate.selection];
      sum = search.loops.highestOfCodes(coded.table->residual, coded.codes->of(candidate.chunk), nullptr);
    }
  });
  return bestOf(std::move(shortlist), count, search.agesOf);
}

std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist) {
  /// The chosen rows of a chunk are read so many chunks later, when they have come from memory.
  constexpr size_t ahead = 2;
  std::vector<ScoredChunk> scored(shortlist.size());
  forEachBlock(search, shortlist, [&](size_t first, size_t last, const auto& segments) {
    const std::span<const Shortlisted> block(shortlist.data() + first, last - first);
    loadAll(segments, block, &ChunkCodes::loadDetailsPlace);
    loadAll(segments, block, &ChunkCodes::loadRuns);
    ChosenRows waiting[ahead];
    for (size_t i = first; i < last + ahead; ++i) {
      ChosenRows& chosen = waiting[i % ahead];
      if (i >= first + ahead) {
        const Candidate& candidate = shortlist[i - ahead].candidate;
        const CodedSegment& coded = *segments[candidate.selection];
        const uint32_t sum = search.loops.sumOfResidualMaxima(
            coded.table->residual, coded.codes->residuals(candidate.chunk), chosen.rows.data(), chosen.count);
        scored[i - ahead] = {candidate, coded.table->residualBase + coded.table->residualStep * float(sum)};
      }
      if (i < last) chosen.choose(search.loops, *segments[shortlist[i].candidate.selection], shortlist[i].candidate.chunk);
    }
  });
  return scored;
}

}  // namespace maxsimd
