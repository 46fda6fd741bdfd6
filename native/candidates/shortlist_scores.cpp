#include "candidates/shortlist_scores.h"

#include "kernels/approximate/maxsim_codes.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// Survivors that one thread looks at together.
constexpr size_t blockSurvivors = 128;
/// So far ahead the memory of a survivor is asked for, and before it the place of that memory.
constexpr size_t aheadOfMemory = 2, aheadOfPlace = 12;

/// `look(i, coded, chunk)` at every survivor; `prefetch(codes, chunk)` asks for the memory that it will read.
template <typename Prefetch, typename Look>
void forEachSurvivor(const SurvivorSearch& search, const std::vector<Survivor>& survivors, const Prefetch& prefetch,
                     const Look& look) {
  std::vector<const CodedSegment*> places;
  for (const CodedSegment& coded : search.segments) {
    places.resize(std::max<size_t>(places.size(), coded.segment + 1));
    places[coded.segment] = &coded;
  }
  search.pool.parallelFor((survivors.size() + blockSurvivors - 1) / blockSurvivors, [&](size_t b) {
    search.deadline.check();
    const size_t last = std::min(survivors.size(), (b + 1) * blockSurvivors);
    for (size_t i = b * blockSurvivors; i < last; ++i) {
      if (i + aheadOfPlace < survivors.size()) {
        const Candidate& ahead = survivors[i + aheadOfPlace].candidate;
        places[ahead.segment]->codes->prefetchPlace(ahead.chunk);
      }
      if (i + aheadOfMemory < last) {
        const Candidate& ahead = survivors[i + aheadOfMemory].candidate;
        prefetch(*places[ahead.segment]->codes, ahead.chunk);
      }
      const Candidate& candidate = survivors[i].candidate;
      look(i, *places[candidate.segment], candidate.chunk);
    }
  });
}

}  // namespace

std::vector<Survivor> bestByLevels(const SurvivorSearch& search, const std::vector<Survivor>& survivors,
                                   size_t count) {
  std::vector<std::vector<Survivor>> parts{survivors};
  forEachSurvivor(
      search, survivors, [](const ChunkCodes& codes, uint32_t chunk) { codes.prefetchCodes(chunk); },
      [&](size_t i, const CodedSegment& coded, uint32_t chunk) {
        const RefinedTable& table = coded.table->refined;
        const auto of = coded.codes->of(chunk);
        parts[0][i].sum = sumOfMaxima(table.levels, table.tokensPadded, table.codeMask, of.data(), uint32_t(of.size()));
      });
  return bestOf(parts, search.tokens, count, search.ageOf);
}

std::vector<ScoredSurvivor> scoreByCodewords(const SurvivorSearch& search, const std::vector<Survivor>& survivors) {
  std::vector<ScoredSurvivor> scored(survivors.size());
  forEachSurvivor(
      search, survivors,
      [](const ChunkCodes& codes, uint32_t chunk) {
        codes.prefetchCodes(chunk);
        codes.prefetchDetails(chunk);
      },
      [&](size_t i, const CodedSegment& coded, uint32_t chunk) {
        const CodebookTable& table = *coded.table;
        const ChunkCodes& codes = *coded.codes;
        const auto of = codes.of(chunk);
        const uint32_t sum = sumOfRefinedMaxima(table.refined, of.data(), codes.runs(chunk), uint32_t(of.size()),
                                                codes.residuals(chunk), codes.rows(chunk));
        scored[i] = {{coded.segment, chunk}, table.refinedBase + table.refinedStep * float(sum)};
      });
  return scored;
}

}  // namespace maxsimd
