#include "candidates/candidates.h"

#include "candidates/code_scan.h"
#include "candidates/device_scan.h"
#include "candidates/list_scan.h"
#include "candidates/query_tables.h"
#include "candidates/ranking.h"
#include "candidates/shortlist_scores.h"
#include "codes/codebook_fit.h"
#include "files/error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace maxsimd {
namespace {

/// Chunks that are ranked by residual codes: so many, and so many for each candidate asked for. Fewer for small requests lose
/// more of the best ten than they save (docs/benchmarks.md).
constexpr uint32_t shortlistBase = 240;
constexpr uint32_t shortlistPerCandidate = 7;
/// Codes of finer centroids than usual tell chunks apart so well that fewer hold the same best: the fewer, the more of a
/// token vector its centroid is (docs/benchmarks.md).
constexpr double fewOfFine = 0.59, shareOfFew = 0.8, fewerPerShare = 5, fewestOfFine = 0.45;
/// Lists know a chunk by some of its codes only: from twice to four times the shortlist is looked at by all of theirs, as
/// it is a smaller share of so many chunks and more; to three times for many candidates, which lose nothing by it.
constexpr double fewListed = 2, manyListed = 4, manyListedOfMany = 3, chunksOfFewListed = 50'000;
constexpr double visitsPerListed = 1.3;
/// Beyond so many chunks the shortlist grows with a power of their number: its root,
constexpr double manyChunks = 100'000;
constexpr double growth = 0.5;
/// and for many candidates faster, as what stands far down a ranking has more that nearly ties with it.
constexpr uint32_t fewCandidates = 200;
constexpr uint32_t manyCandidates = 500;
constexpr double growthOfMany = 0.65;
/// The more tokens a query has, the better what codes say of a chunk agrees with its exact score: the shortlist shrinks with
/// the root of their number, but for the many queries in between (docs/benchmarks.md).
constexpr uint32_t leastTokens = 8, fewestUsual = 16, mostUsual = 20, mostTokens = 40;
/// The budget of an exact scan is stated for this many query tokens.
constexpr uint64_t budgetTokens = 32;

/// How much of the usual shortlist this codebook needs.
double partNeeded(const CodebookData& data) {
  if (!isFine(data)) return 1;
  return std::clamp(fewOfFine - fewerPerShare * (double(data.share) - shareOfFew), fewestOfFine, 1.0);
}

/// From few candidates, 0, to many, 1.
double depthOf(uint32_t candidateK) {
  return double(std::clamp(candidateK, fewCandidates, manyCandidates) - fewCandidates) / (manyCandidates - fewCandidates);
}

/// Some 99 in 100 of the best ten by exact MaxSim are among so many by codes (docs/architecture/candidates.md), and
/// chunks that nearly tie grow with the index.
uint32_t shortlistFor(uint32_t candidateK, uint32_t tokens, uint64_t selected, double part) {
  const double few = part * (shortlistBase + shortlistPerCandidate * candidateK);
  const double power = std::lerp(growth, growthOfMany, depthOf(candidateK));
  const double byTokens =
      std::sqrt(double(std::clamp(tokens, fewestUsual, mostUsual)) / std::clamp(tokens, leastTokens, mostTokens));
  return uint32_t(byTokens * few * std::pow(std::max(1.0, double(selected) / manyChunks), power));
}

ListBreadth breadthFor(uint32_t shortlist, uint32_t candidateK, uint64_t selected) {
  const double most = std::lerp(manyListed, manyListedOfMany, depthOf(candidateK));
  const double listed = std::clamp(1 + double(selected) / chunksOfFewListed, fewListed, most);
  return {uint32_t(shortlist * listed), float(shortlist * listed * visitsPerListed)};
}

bool useLists(std::span<const CodedSegment> segments, Plan plan, uint32_t tokens, const ListBreadth& breadth) {
  if (plan != Plan::automatic) return plan == Plan::lists;
  return listScanCost(segments, tokens, breadth) < codeScanCost(segments, tokens);
}

/// Records of one segment, ascending.
std::vector<uint32_t> matchingRecords(const SegmentSnapshot& snapshot, uint64_t generation, const MetadataFilter& filter,
                                      const Checkpoint& checkpoint) {
  std::vector<uint32_t> matching;
  if (filter.terms) matching = snapshot.segment->recordsMatching(*filter.terms, snapshot.records, checkpoint);
  if (!filter.where) return matching;
  const Bitmap meeting = recordsMeeting(*filter.where, snapshot, generation, checkpoint);
  if (filter.terms) std::erase_if(matching, [&meeting](uint32_t record) { return !meeting.test(record); });
  else meeting.forEach(0, meeting.size(), [&matching](uint32_t record) { matching.push_back(record); });
  return matching;
}

/// What the filter leaves of the live chunks.
std::shared_ptr<const LiveChunks> filtered(const Segment& segment, const LiveChunks& live,
                                           const std::vector<uint32_t>& records) {
  auto left = std::make_shared<LiveChunks>();
  left->chunks.resize(live.chunks.size());
  for (const uint32_t number : records) {
    const RecordEntry& record = segment.record(number);
    if (!live.chunks.test(record.firstChunk)) continue;
    for (uint32_t c = 0; c < record.chunks; ++c) left->chunks.set(record.firstChunk + c);
    left->count += record.chunks;
    left->rows += record.rows;
  }
  return left;
}

/// Keeps the `count` best, best first.
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

std::vector<Selection> selectLive(const std::vector<SegmentSnapshot>& snapshots, uint64_t generation,
                                  const MetadataFilter& filter, const Deadline& deadline) {
  std::vector<Selection> selections;
  const Checkpoint checkpoint = [&deadline] { deadline.check(); };
  for (const SegmentSnapshot& snapshot : snapshots) {
    checkpoint();
    auto live = snapshot.live->at(generation, snapshot.records, snapshot.epoch);
    if ((filter.terms || filter.where) && live->count > 0) {
      live = filtered(*snapshot.segment, *live, matchingRecords(snapshot, generation, filter, checkpoint));
    }
    selections.push_back({snapshot, std::move(live)});
  }
  return selections;
}

std::vector<uint64_t> matchingVersions(const Index& index, uint64_t generation, const MetadataFilter& filter,
                                       const Deadline& deadline) {
  std::vector<uint64_t> versionIds;
  for (const Selection& selection : selectLive(index.snapshot(), generation, filter, deadline)) {
    const Segment& segment = *selection.snapshot.segment;
    const Bitmap& chunks = selection.chunks->chunks;
    for (uint32_t r = 0; r < selection.snapshot.records; ++r) {
      const RecordEntry& record = segment.record(r);
      if (!chunks.test(record.firstChunk)) continue;
      // Whoever is not sure what a record holds does not name its document.
      if (segment.knownDamaged(r)) throw segment.unread(*selection.snapshot.mapping, r);
      versionIds.push_back(record.versionId);
    }
  }
  std::sort(versionIds.begin(), versionIds.end());
  return versionIds;
}

uint64_t matchingTokenVectors(const Index& index, uint64_t generation, const MetadataFilter& filter,
                              const Deadline& deadline) {
  uint64_t rows = 0;
  for (const Selection& selection : selectLive(index.snapshot(), generation, filter, deadline)) {
    rows += selection.chunks->rows;
  }
  return rows;
}

namespace {

/// Whether the selections have found their candidates already.
using Found = std::vector<bool>;

/// Calls body(candidate) for every chunk of the others.
template <typename Body>
void forEachChunk(const std::vector<Selection>& selections, const Found& found, const Body& body) {
  for (uint32_t s = 0; s < selections.size(); ++s) {
    if (found[s]) continue;
    const Bitmap& chunks = selections[s].chunks->chunks;
    chunks.forEach(0, chunks.size(), [&](uint32_t chunk) { body(Candidate{s, chunk}); });
  }
}

/// Adds the best of the others by codes, and every chunk of those without codes. Returns how the best were found.
Plan addBestByCodes(const Kernel& kernel, const std::vector<Selection>& selections, const Found& found, Pool& pool,
                    const IndexSearch& request, const PackedQuery& query, const AgesOf& ages,
                    std::vector<ScoredChunk>& scored) {
  std::vector<CodedSegment> segments;
  std::vector<const Codebook*> codebooks;
  for (uint32_t s = 0; s < selections.size(); ++s) {
    const LiveChunks& selected = *selections[s].chunks;
    if (found[s] || selected.count == 0) continue;
    if (const ChunkCodes* codes = selections[s].snapshot.codes.get()) {
      segments.push_back({s, &selected, codes, nullptr});
      if (std::find(codebooks.begin(), codebooks.end(), &codes->codebook()) == codebooks.end())
        codebooks.push_back(&codes->codebook());
    } else {
      // They stay whatever comes.
      selected.chunks.forEach(0, selected.chunks.size(),
                              [&](uint32_t chunk) { scored.push_back({{s, chunk}, 0.0f}); });
    }
  }
  const QueryTables tables(kernel, request.query, request.offsets, query.dim, codebooks, pool);
  for (CodedSegment& coded : segments) {
    const auto codebook = std::find(codebooks.begin(), codebooks.end(), &coded.codes->codebook());
    coded.table = &tables.of(size_t(codebook - codebooks.begin()));
  }
  const ShortlistSearch search{segments, query.tokens, *kernel.loops, ages, pool, request.deadline};
  uint64_t selected = 0;
  for (const CodedSegment& coded : segments) selected += coded.selected->count;
  double part = 0;
  for (const Codebook* codebook : codebooks) part = std::max(part, partNeeded(codebook->data()));
  const auto count = uint32_t(request.breadth * shortlistFor(request.candidateK, query.tokens, selected, part));
  const ListBreadth breadth = breadthFor(count, request.candidateK, selected);
  std::vector<Shortlisted> shortlist;
  thread_local HighestEntries ownHighest;
  const HighestEntries unknown;
  if (useLists(segments, request.plan, query.tokens, breadth)) {
    shortlist = shortlistByLists(search, breadth);
    shortlist = bestByEntries(search, std::move(shortlist), count, ownHighest);
  }
  // Lists may meet too few chunks.
  const bool byLists = shortlist.size() >= request.candidateK;
  if (!byLists) shortlist = shortlistByCodes(search, count);
  std::vector<ScoredChunk> rescored = scoreByResidualCodes(search, shortlist, byLists ? ownHighest : unknown);
  keepBest(rescored, request.candidateK, ages);
  scored.insert(scored.end(), rescored.begin(), rescored.end());
  return byLists ? Plan::lists : Plan::codes;
}

/// By segment, then chunk: exact scores are taken in order of position, for the sake of memory; the rank is remembered.
void addInOrder(const std::vector<ScoredChunk>& scored, CandidateSet& set) {
  std::vector<uint32_t> order(scored.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Candidate &x = scored[a].candidate, &y = scored[b].candidate;
    return x.selection != y.selection ? x.selection < y.selection : x.chunk < y.chunk;
  });
  for (const uint32_t rank : order) {
    set.candidates.push_back(scored[rank].candidate);
    set.preselected.push_back({scored[rank].score, rank});
  }
}

/// Whether all chunks of selections that have not found their candidates are to be scored exactly.
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
  // Half as many query tokens do not halve a scan: rows come from memory all the same.
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
    forEachChunk(selections, found, [&](const Candidate& candidate) { set.candidates.push_back(candidate); });
  }
  addInOrder(scored, set);
  set.considered += set.candidates.size() - onDevice;
  return set;
}

}  // namespace maxsimd
