#include "candidates/candidates.h"

#include "candidates/device_scan.h"
#include "candidates/list_scan.h"
#include "candidates/query_tables.h"
#include "candidates/ranking.h"
#include "candidates/shortlist.h"
#include "codes/search_tuning.h"
#include "files/error.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace maxsimd {
namespace {

/// `exactTokenVectorsMax`, the largest set that is scanned exactly, holds for a query of this many tokens.
constexpr uint64_t budgetTokens = 32;

/// Sorts the chunks by score, best first, and keeps the first `count`.
void keepBest(std::vector<ScoredChunk>& scored, size_t count, const AgesOf& agesOf) {
  std::vector<float> scores;
  std::vector<Candidate> candidates;
  for (const auto& [candidate, score] : scored) {
    scores.push_back(score);
    candidates.push_back(candidate);
  }
  scored.clear();
  for (const Ranked& ranked : bestByScore(scores, candidates, count, agesOf))
    scored.push_back({candidates[ranked.position], ranked.score});
}

}  // namespace

std::vector<Age> candidateAges(const std::vector<Selection>& selections, std::span<const Candidate> candidates) {
  loadPlaces(selections, candidates);
  std::vector<Age> ages;
  for (const Candidate& candidate : candidates) {
    const Segment& segment = *selections[candidate.selection].snapshot.segment;
    const RecordEntry& record = segment.record(segment.chunk(candidate.chunk).record);
    ages.push_back({record.versionId, candidate.chunk - record.firstChunk});
  }
  return ages;
}

void loadPlaces(const std::vector<Selection>& selections, std::span<const Candidate> candidates) {
  const auto segmentOf = [&](const Candidate& candidate) -> const Segment& {
    return *selections[candidate.selection].snapshot.segment;
  };
  for (const Candidate& candidate : candidates) segmentOf(candidate).loadChunkPlace(candidate.chunk);
  for (const Candidate& candidate : candidates) {
    const Segment& segment = segmentOf(candidate);
    segment.loadRecordPlace(segment.chunk(candidate.chunk).record);
  }
}

Chunk exactChunk(const Selection& selection, uint32_t chunk) {
  const Segment& segment = *selection.snapshot.segment;
  const Mapping& mapping = *selection.snapshot.mapping;
  const ChunkEntry& entry = segment.chunk(chunk);
  if (!segment.dataIntact(mapping, entry.record)) throw segment.unread(mapping, entry.record);
  const RecordView view = segment.view(mapping, entry.record);
  return {view.vectors() + entry.firstRow * segment.shape().bytes(), view.scales() + entry.firstRow,
          segment.chunkRows(chunk)};
}

namespace {

/// found[s] = the candidates of selection `s` are known already, because a device has scored its segment.
using Found = std::vector<bool>;

/// Calls body(candidate) for every chunk of the selections whose candidates are not known yet.
template <typename Body>
void forEachChunk(const std::vector<Selection>& selections, const Found& found, const Body& body) {
  for (uint32_t s = 0; s < selections.size(); ++s) {
    if (found[s]) continue;
    const Bitmap& chunks = selections[s].chunks->chunks;
    chunks.forEach(0, chunks.size(), [&](uint32_t chunk) { body(Candidate{s, chunk}); });
  }
}

/// Splits the segments whose candidates are not known yet. Those with codes go to `segments`, and their codebooks to
/// `codebooks`. Segments without codes can only be scored exactly, so all their chunks go to `scored`.
void takeApart(const std::vector<Selection>& selections, const Found& found, std::vector<CodedSegment>& segments,
               std::vector<const Codebook*>& codebooks, std::vector<ScoredChunk>& scored) {
  for (uint32_t s = 0; s < selections.size(); ++s) {
    const LiveChunks& selected = *selections[s].chunks;
    if (found[s] || selected.count == 0) continue;
    const ChunkCodes* codes = selections[s].snapshot.codes.get();
    if (codes == nullptr) {
      selected.chunks.forEach(0, selected.chunks.size(), [&](uint32_t chunk) { scored.push_back({{s, chunk}, 0.0f}); });
      continue;
    }
    const auto known = std::find(codebooks.begin(), codebooks.end(), &codes->codebook());
    segments.push_back({s, &selected, codes, size_t(known - codebooks.begin())});
    if (known == codebooks.end()) codebooks.push_back(&codes->codebook());
  }
}

using Graphs = std::vector<std::shared_ptr<const CentroidGraph>>;

/// The graphs of the codebooks. Empty unless each is large enough for a graph over its centroids, and has one.
Graphs graphsOf(std::span<const Codebook* const> codebooks) {
  Graphs graphs;
  for (const Codebook* codebook : codebooks) {
    auto graph = codebook->count() >= graphCentroids ? codebook->graph() : nullptr;
    if (graph == nullptr) return {};
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

/// Chooses candidates in the selections that have none yet and adds them to `scored`: the best chunks by codes, and
/// every chunk of segments without codes. Returns the plan that found the best chunks.
Plan addBestByCodes(const Kernel& kernel, const std::vector<Selection>& selections, const Found& found, Pool& pool,
                    const IndexSearch& request, const PackedQuery& query, const AgesOf& ages,
                    std::vector<ScoredChunk>& scored) {
  std::vector<CodedSegment> segments;
  std::vector<const Codebook*> codebooks;
  takeApart(selections, found, segments, codebooks, scored);
  QueryTables tables(kernel, request.query, request.offsets, query.dim, codebooks, pool);
  ShortlistSearch search{
      segments,        std::vector<const CodedSegment*>(selections.size()), tables, *kernel.loops, ages, pool,
      request.deadline};
  uint64_t selected = 0;
  for (const CodedSegment& coded : segments) {
    search.bySelection[coded.selection] = &coded;
    selected += coded.selected->count;
  }
  const uint32_t count = SearchTuning::shortlist(request.candidateK, selected, request.breadth);
  const auto listed = uint32_t(std::min(count * SearchTuning::listedPerShortlisted, double(selected)));
  const uint32_t lists = listsMeeting(search, listed);
  Plan plan = request.plan;
  if (plan == Plan::automatic) plan = listsAreCheaper(search, listed) ? Plan::lists : Plan::codes;
  Graphs graphs;
  if (request.plan == Plan::automatic && plan == Plan::lists && lists <= graphWantedMost) {
    graphs = graphsOf(codebooks);
    if (!graphs.empty()) plan = Plan::graph;
  }
  const bool byGraph = plan == Plan::graph;
  if (request.plan == Plan::graph) {
    for (const Codebook* codebook : codebooks) graphs.push_back(codebook->buildGraph(request.deadline));
  }
  if (byGraph) tables.addNearest(std::min(lists, graphWantedMost), graphs, request.deadline);
  else tables.addAll();
  std::vector<Shortlisted> shortlist;
  if (plan != Plan::codes) shortlist = shortlistByLists(search, listed, lists);
  // The lists may name fewer chunks than the search wants. Then all codes are scanned.
  if (shortlist.size() < request.candidateK) {
    plan = Plan::codes;
    shortlist.clear();
    forEachChunk(selections, found, [&](const Candidate& candidate) {
      if (search.bySelection[candidate.selection] != nullptr) shortlist.push_back({0, candidate});
    });
  }
  if (byGraph) addEntries(search, shortlist);
  std::vector<ScoredChunk> rescored = scoreByResidualCodes(search, bestByCodes(search, std::move(shortlist), count));
  keepBest(rescored, request.candidateK, ages);
  scored.insert(scored.end(), rescored.begin(), rescored.end());
  return plan;
}

/// Adds the chunks to `set`, ordered by segment and then by chunk. Exact scoring reads memory faster in that order. The
/// rank by approximate score is kept beside each chunk.
void addInOrder(const std::vector<ScoredChunk>& scored, CandidateSet& set) {
  std::vector<uint32_t> order(scored.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return scored[a].candidate < scored[b].candidate; });
  for (const uint32_t rank : order) {
    set.candidates.push_back(scored[rank].candidate);
    set.preselected.push_back({scored[rank].score, rank});
  }
}

/// Whether all chunks of the selections whose candidates are not known yet are scored exactly. That is so if few chunks
/// match, if none has codes, or if the caller asked for it.
bool scansExactly(const Index& index, const IndexSearch& request, const std::vector<Selection>& selections,
                  const Found& found) {
  if (request.plan == Plan::exact) return true;
  uint64_t chunks = 0, rows = 0;
  bool coded = false;
  for (size_t s = 0; s < selections.size(); ++s) {
    if (found[s]) continue;
    const Selection& selection = selections[s];
    chunks += selection.chunks->count;
    rows += selection.chunks->rows;
    coded |= selection.snapshot.codes != nullptr && selection.chunks->count > 0;
  }
  if (!coded || chunks <= request.candidateK) return true;
  if (request.plan != Plan::automatic) return false;
  // A short query counts as `budgetTokens`: fewer tokens make a scan hardly faster, because the same rows come from
  // memory.
  const uint64_t tokens = std::max<uint64_t>(paddedTokens(uint32_t(request.offsets.size())), budgetTokens);
  return rows * tokens <= index.options().exactTokenVectorsMax * budgetTokens;
}

}  // namespace

CandidateSet chooseCandidates(const Index& index, Pool& pool, const IndexSearch& request, const Query& query,
                              const std::vector<Selection>& selections) {
  CandidateSet set;
  Found& found = set.scoredOnDevice;
  found.resize(selections.size(), false);
  const AgesOf ages = [&selections](std::span<const Candidate> of) { return candidateAges(selections, of); };
  std::vector<ScoredChunk> scored = scanOnDevice(index, request, query, selections, found);
  keepBest(scored, scored.size(), ages);
  for (size_t s = 0; s < selections.size(); ++s) {
    if (!found[s]) continue;
    set.plan = Plan::device;
    set.considered += selections[s].chunks->count;
  }
  const size_t onDevice = scored.size();
  if (!scansExactly(index, request, selections, found)) {
    const Plan plan = addBestByCodes(index.kernel(), selections, found, pool, request, query.packed(), ages, scored);
    if (set.plan == Plan::exact) set.plan = plan;
  } else if (set.plan == Plan::device) {
    forEachChunk(selections, found, [&](const Candidate& candidate) { scored.push_back({candidate, 0.0f}); });
  } else {
    set.everyChunk = true;
    for (const Selection& selection : selections) set.considered += selection.chunks->count;
    return set;
  }
  addInOrder(scored, set);
  set.considered += set.candidates.size() - onDevice;
  return set;
}

}  // namespace maxsimd
