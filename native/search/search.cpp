#include "search/search.h"

#include "candidates/candidates.h"
#include "candidates/ranking.h"
#include "device/residents.h"
#include "search/page_prefetch.h"
#include "runtime/query.h"

#include <algorithm>
#include <unordered_map>

namespace maxsimd {
namespace {

/// Chunks that a thread scores between two checks of the deadline.
constexpr size_t blockChunks = 64;
/// A grouped search that finds too few documents takes this many times the candidates, at most twice.
constexpr uint32_t widening = 4;
constexpr uint32_t widenedMost = widening * widening;
/// A widened search computes at most this many products of a token vector with a query token: 0.1 s of one core with
/// AVX2.
constexpr double widenedProductsMost = 1u << 28;

/// Throws `AbsentParts` with all parts that exact scoring would miss, so that they are fetched together.
void requirePresent(const std::vector<Selection>& selections, const std::vector<Candidate>& candidates) {
  std::vector<AbsentPart> absent;
  for (const Candidate& candidate : candidates) {
    const Segment& segment = *selections[candidate.selection].snapshot.segment;
    segment.collectAbsent(segment.chunk(candidate.chunk).record, absent);
  }
  if (!absent.empty()) throw AbsentParts(std::move(absent));
}

void scoreExactly(const Index& index, Pool& pool, const IndexSearch& request, const Query& query,
                  const std::vector<Selection>& selections, const std::vector<Candidate>& candidates,
                  std::vector<float>& scores) {
  requirePresent(selections, candidates);
  scores.resize(candidates.size());
  const size_t blocks = (scores.size() + blockChunks - 1) / blockChunks;
  pool.parallelFor(blocks, [&](size_t b) {
    request.deadline.check();
    Chunk chunks[blockChunks];
    const size_t first = b * blockChunks;
    const size_t count = std::min(blockChunks, scores.size() - first);
    prefetchPages(selections, candidates.data() + first, count);
    loadPlaces(selections, std::span(candidates).subspan(first, count));
    for (size_t i = 0; i < count; ++i) {
      const Candidate& candidate = candidates[first + i];
      chunks[i] = exactChunk(selections[candidate.selection], candidate.chunk);
    }
    for (size_t i = 0; i < count; ++i) {
      // The processor itself prefetches the chunk after the last one.
      if (i > 0 && candidates[first + i].chunk == candidates[first + i - 1].chunk + 1) continue;
      loadLines(*chunks[i].vectors);
      loadLines(*chunks[i].scales);
    }
    index.kernel().maxsim(query.packed(), chunks, count, scores.data() + first);
  });
}

/// The best chunks of the best topK documents, document by document. `all` is best first.
std::vector<std::vector<Ranked>> bestOfDocuments(const std::vector<Ranked>& all, uint32_t topK) {
  std::vector<std::vector<Ranked>> documents;
  std::unordered_map<uint64_t, size_t> places;
  for (const Ranked& ranked : all) {
    const auto [place, isNew] = places.try_emplace(ranked.age.versionId, documents.size());
    if (isNew && documents.size() < topK) documents.emplace_back();
    if (place->second >= documents.size()) continue;
    std::vector<Ranked>& chunks = documents[place->second];
    if (chunks.size() < chunksOfDocumentMost) chunks.push_back(ranked);
  }
  return documents;
}

struct Live {
  uint64_t chunks = 0;
  uint64_t rows = 0;
};

Live liveOf(const std::vector<Selection>& selections) {
  Live live;
  for (const Selection& selection : selections) {
    live.chunks += selection.chunks->count;
    live.rows += selection.chunks->rows;
  }
  return live;
}

/// Whether more than `count` documents have live matching chunks.
bool hasMoreDocuments(const std::vector<Selection>& selections, size_t count) {
  size_t documents = 0;
  for (const Selection& selection : selections) {
    const Segment& segment = *selection.snapshot.segment;
    for (uint32_t record = 0; record < selection.snapshot.records; ++record) {
      if (selection.chunks->chunks.test(segment.record(record).firstChunk) && ++documents > count) return true;
    }
  }
  return false;
}

/// The most candidates that a grouped search may take.
uint32_t widestCandidateK(const IndexSearch& request, const Live& live) {
  const double productsOfChunk =
      double(live.rows) / double(std::max<uint64_t>(1, live.chunks)) * double(request.offsets.size());
  const double affordable = widenedProductsMost / std::max(1.0, productsOfChunk);
  const double widest = double(std::max(request.candidateK, request.topK)) * widenedMost;
  return std::max(request.candidateK, uint32_t(std::min({widest, affordable, double(live.chunks)})));
}

void addComponents(const Index& index, const Query& query, const std::vector<Selection>& selections,
                   const std::vector<Candidate>& candidates, const std::vector<Ranked>& top, SearchOutcome& outcome) {
  const PackedQuery& packed = query.packed();
  std::vector<float> similarities(packed.tokensPadded);
  std::vector<uint32_t> rows(packed.tokensPadded);
  for (const Ranked& ranked : top) {
    const Candidate& candidate = candidates[ranked.position];
    index.kernel().best(packed, exactChunk(selections[candidate.selection], candidate.chunk), similarities.data(),
                        rows.data());
    for (uint32_t i = 0; i < packed.tokens; ++i) {
      outcome.similarities.push_back(similarities[i] * packed.scales[i] + packed.offsets[i]);
      outcome.documentTokens.push_back(rows[i]);
    }
  }
}

/// Says where the results lie in the texts of their documents. Their records were found intact when they were scored.
void addPlaces(const std::vector<Selection>& selections, const std::vector<Candidate>& candidates,
               const std::vector<Ranked>& top, bool components, SearchOutcome& outcome) {
  for (size_t i = 0; i < top.size(); ++i) {
    const Candidate& candidate = candidates[top[i].position];
    const SegmentSnapshot& snapshot = selections[candidate.selection].snapshot;
    const uint32_t record = snapshot.segment->chunk(candidate.chunk).record;
    const uint32_t chunk = candidate.chunk - snapshot.segment->record(record).firstChunk;
    const auto place = snapshot.segment->view(*snapshot.mapping, record).placeOf(chunk);
    if (components) outcome.rowPlaces.emplace_back();
    if (!place) continue;
    outcome.results[i].rangeStart = place->start;
    outcome.results[i].rangeEnd = place->end;
    if (components) outcome.rowPlaces.back().assign(place->rows.begin(), place->rows.end());
  }
}

/// Whether the device's scores equal the exact ones, to the last bit. If not, the device is left alone for a while.
bool deviceIsRight(const Index& index, const std::vector<Selection>& selections, const CandidateSet& set,
                   const std::vector<float>& scores) {
  for (size_t i = 0; i < scores.size(); ++i) {
    const uint32_t s = set.candidates[i].selection;
    if (!set.scoredOnDevice[s] || set.preselected[i].score == scores[i]) continue;
    // Rows that could not be read are zeros. That is not the device's fault.
    selections[s].snapshot.segment->requireRead(*selections[s].snapshot.mapping);
    index.residents()->distrust();
    return false;
  }
  return true;
}

/// Drops codes that could not be read. If there were any, the chosen candidates are worthless.
bool dropUnreadCodes(Index& index, std::vector<Selection>& selections) {
  bool dropped = false;
  for (Selection& selection : selections) {
    auto& codes = selection.snapshot.codes;
    if (codes == nullptr || codes->isRead()) continue;
    index.dropCodes(selection.snapshot.segment->id(), codes);
    codes = nullptr;
    dropped = true;
  }
  return dropped;
}

}  // namespace

const char* planName(Plan plan) {
  switch (plan) {
    case Plan::automatic: return "auto";
    case Plan::exact: return "exact";
    case Plan::codes: return "codes";
    case Plan::lists: return "lists";
    case Plan::graph: return "graph";
    case Plan::device: return "device";
  }
  return "exact";
}

SearchOutcome search(Index& index, Pool& pool, const IndexSearch& request) {
  request.deadline.check();
  const auto start = Clock::now();
  SearchOutcome outcome;
  std::vector<Selection> selections = selectLive(index.snapshot(), request.generation, request, request.deadline);
  const Query query(index.kernel(), request.query, request.offsets, index.options().shape);
  const auto filteredAt = Clock::now();

  CandidateSet set;
  std::vector<float> scores;
  std::vector<Ranked> top;
  auto chosen = filteredAt;
  const auto rankOnce = [&](const IndexSearch& asked) {
    set = chooseCandidates(index, pool, asked, query, selections);
    while (dropUnreadCodes(index, selections)) {
      set = chooseCandidates(index, pool, asked, query, selections);
      outcome.codesLost = true;
    }
    chosen = Clock::now();
    scoreExactly(index, pool, asked, query, selections, set.candidates, scores);
    return deviceIsRight(index, selections, set, scores);
  };
  const auto rank = [&](const IndexSearch& asked) {
    // The second time runs without the device.
    if (!rankOnce(asked)) rankOnce(asked);
  };
  const auto best = [&](size_t count) {
    return bestByScore(scores, set.candidates, count,
                       [&](std::span<const Candidate> of) { return candidateAges(selections, of); });
  };
  rank(request);
  if (request.grouped) {
    IndexSearch wider = request;
    const uint32_t widest = widestCandidateK(request, liveOf(selections));
    auto documents = bestOfDocuments(best(scores.size()), request.topK);
    while (documents.size() < request.topK && wider.candidateK < widest &&
           hasMoreDocuments(selections, documents.size())) {
      wider.candidateK = std::min(wider.candidateK * widening, widest);
      rank(wider);
      documents = bestOfDocuments(best(scores.size()), request.topK);
    }
    for (const auto& chunks : documents) top.insert(top.end(), chunks.begin(), chunks.end());
  } else {
    top = best(request.topK);
  }
  outcome.preselected = !set.preselected.empty();
  outcome.plan = set.plan;
  for (const auto& [score, age, position, candidate] : top) {
    SearchOutcome::Result result{age.versionId, age.chunkIndex, score, 0.0f, 0, 0, 0};
    if (outcome.preselected) {
      result.candidateScore = set.preselected[position].score;
      result.candidateRank = set.preselected[position].rank;
    }
    outcome.results.push_back(result);
  }
  addPlaces(selections, set.candidates, top, request.components, outcome);
  if (request.components) addComponents(index, query, selections, set.candidates, top, outcome);
  for (const Selection& selection : selections) {
    if (selection.chunks->count > 0) selection.snapshot.segment->requireRead(*selection.snapshot.mapping);
  }
  outcome.candidateCount = uint32_t(set.considered);
  const auto end = Clock::now();
  outcome.filterMs = millisecondsBetween(start, filteredAt);
  outcome.candidatesMs = millisecondsBetween(filteredAt, chosen);
  outcome.exactMs = millisecondsBetween(chosen, end);
  return outcome;
}

}  // namespace maxsimd
