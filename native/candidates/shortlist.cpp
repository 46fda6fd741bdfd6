#include "candidates/shortlist.h"

#include "candidates/ranking.h"
#include "kernels/cache_lines.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// Calls look(i, segment, chunk) for each chunk of the shortlist, on all threads. Codes lie far apart in memory. So the
/// codes of a block of chunks are prefetched together, and the processor waits for many of them at once.
template <typename Look>
void forEachChunk(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist, const Look& look) {
  constexpr size_t block = 128;
  search.pool.parallelFor((shortlist.size() + block - 1) / block, [&](size_t b) {
    search.deadline.check();
    const size_t first = b * block, last = std::min(shortlist.size(), first + block);
    const auto codesOf = [&](size_t i) -> const ChunkCodes& {
      return *search.bySelection[shortlist[i].candidate.selection]->codes;
    };
    for (size_t i = first; i < last; ++i) codesOf(i).loadPlace(shortlist[i].candidate.chunk);
    for (size_t i = first; i < last; ++i) {
      // The processor prefetches the chunk that follows in memory by itself.
      if (i == first || shortlist[i].candidate.chunk != shortlist[i - 1].candidate.chunk + 1)
        codesOf(i).loadCodes(shortlist[i].candidate.chunk);
    }
    for (size_t i = first; i < last; ++i)
      look(i, *search.bySelection[shortlist[i].candidate.selection], shortlist[i].candidate.chunk);
  });
}

}  // namespace

uint32_t dropWorst(std::vector<Shortlisted>& shortlist, size_t count) {
  if (shortlist.size() <= count) return 0;
  // Counting how many chunks have each sum finds the least one that stays, faster than sorting.
  std::vector<uint32_t> counts(1);
  for (const auto& [sum, candidate] : shortlist) {
    if (sum >= counts.size()) counts.resize(sum + 1);
    ++counts[sum];
  }
  auto least = uint32_t(counts.size());
  for (size_t found = 0; found < count;) found += counts[--least];
  std::erase_if(shortlist, [least](const Shortlisted& one) { return one.sum < least; });
  return least;
}

std::vector<Shortlisted> bestBySum(std::vector<Shortlisted> shortlist, size_t count, const AgesOf& agesOf) {
  if (shortlist.size() <= count) return shortlist;
  dropWorst(shortlist, count);
  return bestOf(std::move(shortlist), count, &Shortlisted::sum, agesOf);
}

void addEntries(const ShortlistSearch& search, const std::vector<Shortlisted>& shortlist) {
  std::vector<Bitmap> wanted;
  for (size_t b = 0; b < search.tables.size(); ++b) wanted.emplace_back(search.tables.of(b).residual.codeMask + 1);
  for (const auto& [sum, candidate] : shortlist) {
    const CodedSegment& coded = *search.bySelection[candidate.selection];
    const uint32_t mask = search.tables.of(coded.codebook).residual.codeMask;
    for (const uint32_t code : coded.codes->of(candidate.chunk)) wanted[coded.codebook].set(code & mask);
  }
  for (size_t b = 0; b < wanted.size(); ++b) search.tables.add(b, wanted[b]);
}

std::vector<Shortlisted> bestByCodes(const ShortlistSearch& search, std::vector<Shortlisted> shortlist, size_t count) {
  forEachChunk(search, shortlist, [&](size_t i, const CodedSegment& coded, uint32_t chunk) {
    shortlist[i].sum = search.loops.sumOfMaxima(search.tables.of(coded.codebook).residual, coded.codes->of(chunk));
  });
  return bestBySum(std::move(shortlist), count, search.agesOf);
}

std::vector<ScoredChunk> scoreByResidualCodes(const ShortlistSearch& search,
                                              const std::vector<Shortlisted>& shortlist) {
  std::vector<ScoredChunk> scored(shortlist.size());
  forEachChunk(search, shortlist, [&](size_t i, const CodedSegment& coded, uint32_t chunk) {
    const CodebookTable& table = search.tables.of(coded.codebook);
    const uint32_t sum = search.loops.sumOfResidualMaxima(table.residual, coded.codes->coded(chunk));
    scored[i] = {shortlist[i].candidate, table.residualBase + table.residualStep * float(sum)};
  });
  return scored;
}

}  // namespace maxsimd
