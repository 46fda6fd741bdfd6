#include "engine/candidates.h"

#include "engine/search.h"
#include "kernels/code_levels.h"
#include "store/error.h"

#include <algorithm>
#include <string>

namespace maxsimd {
namespace {

constexpr size_t blockChunks = 1024;
/// Up to here the codes of all chunks are scanned within about 2 ms on two cores.
constexpr size_t codesChunksMax = 60'000;
/// A graph is asked only where it leaves out most of what matches.
constexpr size_t graphShareMin = 4;
constexpr uint32_t graphFetchMin = 1000;
constexpr uint32_t graphFetchMax = 4000;
constexpr size_t segmentFetchMin = 64;

/// Chunks to fetch from a segment's graph: its share of 8 x candidateK, twice over, because the best chunks may
/// crowd in few segments.
uint32_t graphFetch(uint32_t candidateK, size_t matching, size_t total) {
  const size_t all = std::clamp(8 * candidateK, graphFetchMin, graphFetchMax);
  return uint32_t(std::clamp(2 * all * matching / total, segmentFetchMin, all));
}

Error damaged(const Segment& segment, uint32_t record) {
  return Error(ErrorCode::corrupt, segment.path() + ": damaged record " + std::to_string(record));
}

/// [first, last) positions of each segment among the candidates.
std::vector<std::pair<size_t, size_t>> segmentRanges(const CandidateSet& set) {
  std::vector<std::pair<size_t, size_t>> ranges;
  size_t position = 0;
  for (uint32_t s = 0; s < set.snapshots.size(); ++s) {
    const size_t first = position;
    while (position < set.candidates.size() && set.candidates[position].segment == s) ++position;
    ranges.emplace_back(first, position);
  }
  return ranges;
}

}  // namespace

Chunk CandidateSet::exactChunk(const Candidate& candidate) const {
  const SegmentSnapshot& snapshot = snapshots[candidate.segment];
  const Segment& segment = *snapshot.segment;
  const ChunkEntry& entry = segment.chunk(candidate.chunk);
  if (!segment.dataIntact(*snapshot.mapping, entry.record)) throw damaged(segment, entry.record);
  const RecordView view = segment.view(*snapshot.mapping, entry.record);
  return {view.vectors() + size_t(entry.firstRow) * segment.dim(), view.scales() + entry.firstRow,
          segment.chunkRows(candidate.chunk)};
}

CandidateSet collectLive(std::vector<SegmentSnapshot> snapshots, uint64_t generation,
                         const std::optional<std::vector<Term>>& terms, const Deadline& deadline) {
  CandidateSet set;
  set.snapshots = std::move(snapshots);
  for (uint32_t s = 0; s < set.snapshots.size(); ++s) {
    deadline.check();
    const SegmentSnapshot& snapshot = set.snapshots[s];
    const Segment& segment = *snapshot.segment;
    const auto take = [&](uint32_t number) {
      if (!segment.life(number).visibleAt(generation)) return;
      const RecordEntry& record = segment.record(number);
      for (uint32_t c = 0; c < record.chunks; ++c) set.candidates.push_back({s, record.firstChunk + c});
      set.rows += record.rows;
    };
    if (terms) {
      for (const uint32_t number : segment.recordsMatching(*terms, snapshot.records)) take(number);
    } else {
      for (uint32_t number = 0; number < snapshot.records; ++number) take(number);
    }
  }
  return set;
}

bool worthGraphs(const CandidateSet& set) {
  if (set.candidates.size() <= codesChunksMax) return false;
  return std::any_of(set.snapshots.begin(), set.snapshots.end(),
                     [](const SegmentSnapshot& snapshot) { return snapshot.graph != nullptr; });
}

void keepGraphNeighbours(CandidateSet& set, const Index& index, Pool& pool, const SearchRequest& request) {
  const auto ranges = segmentRanges(set);
  std::vector<std::vector<Candidate>> kept(set.snapshots.size());
  const ChunkProjection& projection = *index.options().projection;
  std::vector<float> projected(projection.dim());
  projection.projectQuery(request.query, projected.data());
  pool.parallelFor(set.snapshots.size(), [&](size_t s) {
    request.deadline.check();
    const auto [first, last] = ranges[s];
    const SegmentSnapshot& snapshot = set.snapshots[s];
    const uint32_t fetch = graphFetch(request.candidateK, last - first, set.candidates.size());
    if (snapshot.graph == nullptr || last - first <= graphShareMin * fetch) {
      kept[s].assign(set.candidates.begin() + long(first), set.candidates.begin() + long(last));
      return;
    }
    std::vector<bool> allowed(snapshot.graph->chunks());
    for (size_t i = first; i < last; ++i) allowed[set.candidates[i].chunk] = true;
    for (const uint32_t chunk : snapshot.graph->nearest(projected, fetch, allowed)) kept[s].push_back({uint32_t(s), chunk});
  });
  set.candidates.clear();
  for (const auto& part : kept) set.candidates.insert(set.candidates.end(), part.begin(), part.end());
}

std::vector<Preselected> keepBestByCodes(CandidateSet& set, const Codebook& codebook, Pool& pool,
                                         const SearchRequest& request, const PackedQuery& query) {
  const Codebook::Table table = codebook.table(query);
  constexpr uint32_t uncoded = UINT32_MAX;
  std::vector<uint32_t> levels(set.candidates.size());
  pool.parallelFor((levels.size() + blockChunks - 1) / blockChunks, [&](size_t b) {
    request.deadline.check();
    const size_t last = std::min(levels.size(), (b + 1) * blockChunks);
    for (size_t i = b * blockChunks; i < last; ++i) {
      const Candidate& candidate = set.candidates[i];
      const Segment& segment = *set.snapshots[candidate.segment].segment;
      const bool coded = segment.record(segment.chunk(candidate.chunk).record).codebook == codebook.hash();
      const auto codes = segment.codes(candidate.chunk);
      levels[i] = coded ? sumOfMaxima(table.levels.data(), table.tokensPadded, codes.data(), uint32_t(codes.size()))
                        : uncoded;
    }
  });

  // Rank by level, then position: 64-bit keys that sort ascending.
  std::vector<uint64_t> keys(levels.size());
  for (size_t i = 0; i < levels.size(); ++i) keys[i] = uint64_t(~levels[i]) << 32 | i;
  const auto uncodedCount = size_t(std::count(levels.begin(), levels.end(), uncoded));
  const size_t keep = std::min(keys.size(), uncodedCount + request.candidateK);
  std::nth_element(keys.begin(), keys.begin() + long(keep), keys.end());
  keys.resize(keep);
  std::sort(keys.begin(), keys.end());

  // Scored in order of position, for the sake of memory; the rank is remembered.
  std::vector<std::pair<uint32_t, Preselected>> kept;
  for (uint32_t rank = 0; rank < keep; ++rank) {
    const auto position = uint32_t(keys[rank]);
    const float score = levels[position] == uncoded ? table.base : table.base + table.step * float(levels[position]);
    kept.emplace_back(position, Preselected{score, rank});
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Candidate> candidates;
  std::vector<Preselected> preselected;
  for (const auto& [position, entry] : kept) {
    candidates.push_back(set.candidates[position]);
    preselected.push_back(entry);
  }
  set.candidates = std::move(candidates);
  return preselected;
}

}  // namespace maxsimd
