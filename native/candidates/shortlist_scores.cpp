#include "candidates/shortlist_scores.h"

#include "kernels/approximate/maxsim_codes.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// Chunks of the shortlist that one thread looks at together.
constexpr size_t blockShortlisted = 128;
/// So far ahead the memory of a chunk is asked for, and before it the place of that memory.
constexpr size_t aheadOfMemory = 2, aheadOfPlace = 12;

/// `look(i, coded, chunk)` at every chunk of the shortlist; `prefetch(codes, chunk)` asks for the memory that it reads.
template <typename Prefetch, typename Look>
void forEachShortlisted(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist,
                        const Prefetch& prefetch, const Look& look) {
  std::vector<const CodedSegment*> places;
  for (const CodedSegment& coded : search.segments) {
    places.resize(std::max<size_t>(places.size(), coded.selection + 1));
    places[coded.selection] = &coded;
  }
  search.pool.parallelFor((shortlist.size() + blockShortlisted - 1) / blockShortlisted, [&](size_t b) {
    search.deadline.check();
    const size_t last = std::min(shortlist.size(), (b + 1) * blockShortlisted);
    for (size_t i = b * blockShortlisted; i < last; ++i) {
      if (i + aheadOfPlace < shortlist.size()) {
        const Candidate& ahead = shortlist[i + aheadOfPlace].candidate;
        places[ahead.selection]->codes->prefetchPlace(ahead.chunk);
      }
      if (i + aheadOfMemory < last) {
        const Candidate& ahead = shortlist[i + aheadOfMemory].candidate;
        prefetch(*places[ahead.selection]->codes, ahead.chunk);
      }
      const Candidate& candidate = shortlist[i].candidate;
      look(i, *places[candidate.selection], candidate.chunk);
    }
  });
}

}  // namespace

std::vector<Shortlisted> bestByEntries(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist,
                                   size_t count) {
  std::vector<std::vector<Shortlisted>> parts{shortlist};
  forEachShortlisted(
      search, shortlist, [](const ChunkCodes& codes, uint32_t chunk) { codes.prefetchCodes(chunk); },
      [&](size_t i, const CodedSegment& coded, uint32_t chunk) {
        const ResidualTable& table = coded.table->residual;
        parts[0][i].sum = sumOfMaxima(table.entries, table.tokensPadded, table.codeMask, coded.codes->of(chunk));
      });
  return bestOf(parts, search.tokens, count, search.ageOf);
}

std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist) {
  std::vector<ScoredChunk> scored(shortlist.size());
  forEachShortlisted(
      search, shortlist,
      [](const ChunkCodes& codes, uint32_t chunk) {
        codes.prefetchCodes(chunk);
        codes.prefetchDetails(chunk);
      },
      [&](size_t i, const CodedSegment& coded, uint32_t chunk) {
        const CodebookTable& table = *coded.table;
        const ChunkCodes& codes = *coded.codes;
        const uint32_t sum = sumOfResidualMaxima(table.residual, codes.of(chunk), codes.runs(chunk),
                                                 codes.residuals(chunk), codes.rows(chunk));
        scored[i] = {{coded.selection, chunk}, table.residualBase + table.residualStep * float(sum)};
      });
  return scored;
}

}  // namespace maxsimd
