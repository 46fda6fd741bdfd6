#include "engine/candidates.h"

#include "engine/list_scan.h"
#include "engine/search.h"
#include "kernels/code_levels.h"
#include "store/error.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace maxsimd {
namespace {

/// Chunk numbers whose codes one thread scans at a time; a multiple of a bitmap's words.
constexpr uint32_t scanChunks = 8192;
/// Survivors that one thread scores more finely at a time.
constexpr size_t survivorBlock = 128;
constexpr uint32_t survivorsMin = 2000;
constexpr uint32_t survivorsPerCandidate = 5;
constexpr uint64_t manyChunks = 262'144;

/// Ascending = best first: the level's complement, then the chunk.
using Key = uint64_t;
Key keyOf(uint32_t level, uint32_t chunk) { return uint64_t(~level) << 32 | chunk; }

void keepSmallest(std::vector<Key>& keys, size_t count) {
  if (keys.size() <= count) return;
  std::nth_element(keys.begin(), keys.begin() + long(count), keys.end());
  keys.resize(count);
}

/// The best `count` of the selected chunks by the sums of maxima over their codes, ascending by number.
std::vector<uint32_t> surviveCodes(const Selection& selection, const Codebook::Table& table, uint32_t count, Pool& pool,
                                   const Deadline& deadline) {
  const ChunkCodes& codes = *selection.snapshot.codes;
  const Bitmap& selected = selection.chunks->chunks;
  std::vector<std::vector<Key>> parts((selected.size() + scanChunks - 1) / scanChunks);
  pool.parallelFor(parts.size(), [&](size_t b) {
    deadline.check();
    const auto first = uint32_t(b * scanChunks);
    std::vector<Key> keys;
    keys.reserve(scanChunks);
    selected.forEach(first, first + scanChunks, [&](uint32_t chunk) {
      const auto of = codes.of(chunk);
      keys.push_back(
          keyOf(sumOfMaxima(table.levels.data(), table.tokensPadded, of.data(), uint32_t(of.size())), chunk));
    });
    keepSmallest(keys, count);
    parts[b] = std::move(keys);
  });
  std::vector<Key> keys;
  for (const auto& part : parts) keys.insert(keys.end(), part.begin(), part.end());
  keepSmallest(keys, count);
  std::vector<uint32_t> chunks;
  for (const Key key : keys) chunks.push_back(uint32_t(key));
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

struct Scored {
  Candidate candidate;
  /// Approximate MaxSim; of no meaning for a chunk without codes.
  float score;
  bool coded;
};

/// Uncoded ones first, for they stay whatever comes; then by score.
bool isBetter(const Scored& a, const Scored& b) {
  if (a.coded != b.coded) return !a.coded;
  if (a.score != b.score) return a.score > b.score;
  return a.candidate.segment != b.candidate.segment ? a.candidate.segment < b.candidate.segment
                                                    : a.candidate.chunk < b.candidate.chunk;
}

/// Adds the best `count` of a segment's survivors by centroid and codewords of each token vector.
void addRefined(const ChunkCodes& codes, const Codebook::Table& table, const std::vector<uint32_t>& survivors,
                uint32_t segment, size_t count, Pool& pool, const Deadline& deadline, std::vector<Scored>& scored) {
  const RefinedTable refined = table.refined(codes.codebook().data().subspaces());
  std::vector<Scored> own(survivors.size());
  pool.parallelFor((own.size() + survivorBlock - 1) / survivorBlock, [&](size_t b) {
    deadline.check();
    const size_t last = std::min(own.size(), (b + 1) * survivorBlock);
    for (size_t i = b * survivorBlock; i < last; ++i) {
      const uint32_t chunk = survivors[i];
      const auto of = codes.of(chunk);
      const uint32_t sum =
          sumOfRefinedMaxima(refined, of.data(), codes.runs(chunk), uint32_t(of.size()), codes.residuals(chunk));
      own[i] = {{segment, chunk}, table.refinedBase + table.refinedStep * float(sum), true};
    }
  });
  if (own.size() > count) {
    std::nth_element(own.begin(), own.begin() + long(count), own.end(), isBetter);
    own.resize(count);
  }
  scored.insert(scored.end(), own.begin(), own.end());
}

bool useLists(const Selection& selection, Plan plan, uint32_t survivors) {
  if (plan == Plan::codes) return false;
  if (plan == Plan::lists) return selection.chunks->count > survivors;
  return worthLists(selection, survivors);
}

/// Survivors of all segments together: of the best ten by exact MaxSim more than 99 in 100 are among so many by codes
/// (docs/candidates.md), and chunks that nearly tie grow with the index.
uint64_t survivorsFor(uint32_t candidateK, uint64_t selected) {
  const uint64_t few = std::max(survivorsMin, survivorsPerCandidate * candidateK);
  return selected < manyChunks ? few : 2 * few;
}

/// A segment's part of them: by its chunks and half as many again, and room for all candidates to come from it.
uint32_t partOf(uint64_t survivors, uint32_t candidateK, uint64_t own, uint64_t selected) {
  if (own == selected) return uint32_t(std::min(survivors, own));
  return uint32_t(std::min(own, std::max<uint64_t>(candidateK, 3 * survivors * own / (2 * selected))));
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

}  // namespace

Chunk exactChunk(const Selection& selection, uint32_t chunk) {
  const Segment& segment = *selection.snapshot.segment;
  const Mapping& mapping = *selection.snapshot.mapping;
  const ChunkEntry& entry = segment.chunk(chunk);
  if (!segment.dataIntact(mapping, entry.record)) {
    throw Error(ErrorCode::corrupt, segment.path() + ": damaged record " + std::to_string(entry.record));
  }
  const RecordView view = segment.view(mapping, entry.record);
  return {view.vectors() + size_t(entry.firstRow) * segment.dim(), view.scales() + entry.firstRow,
          segment.chunkRows(chunk)};
}

std::vector<Selection> selectLive(const std::vector<SegmentSnapshot>& snapshots, uint64_t generation,
                                  const std::optional<std::vector<Term>>& terms, const Deadline& deadline) {
  std::vector<Selection> selections;
  for (const SegmentSnapshot& snapshot : snapshots) {
    deadline.check();
    auto live = snapshot.live->at(generation, snapshot.records);
    if (terms && live->count > 0) {
      live = filtered(*snapshot.segment, *live, snapshot.segment->recordsMatching(*terms, snapshot.records));
    }
    selections.push_back({snapshot, std::move(live)});
  }
  return selections;
}

CandidateSet everyChunk(const std::vector<Selection>& selections) {
  CandidateSet set;
  for (uint32_t s = 0; s < selections.size(); ++s) {
    const Bitmap& chunks = selections[s].chunks->chunks;
    chunks.forEach(0, chunks.size(), [&](uint32_t chunk) { set.candidates.push_back({s, chunk}); });
  }
  return set;
}

CandidateSet bestByCodes(const std::vector<Selection>& selections, Pool& pool, const SearchRequest& request,
                         const PackedQuery& query) {
  CandidateSet set;
  std::map<const Codebook*, Codebook::Table> tables;
  std::vector<Scored> scored;
  uint64_t selected = 0;
  for (const Selection& selection : selections) selected += selection.snapshot.codes ? selection.chunks->count : 0;
  const uint64_t survivorCount = survivorsFor(request.candidateK, selected);
  for (uint32_t s = 0; s < selections.size(); ++s) {
    const Selection& selection = selections[s];
    if (selection.chunks->count == 0) continue;
    const ChunkCodes* codes = selection.snapshot.codes.get();
    if (codes == nullptr) {
      const Bitmap& chunks = selection.chunks->chunks;
      chunks.forEach(0, chunks.size(), [&](uint32_t chunk) { scored.push_back({{s, chunk}, 0.0f, false}); });
      continue;
    }
    const Codebook& codebook = codes->codebook();
    auto table = tables.find(&codebook);
    if (table == tables.end()) table = tables.emplace(&codebook, codebook.table(query, request.query, pool)).first;
    const uint32_t part = partOf(survivorCount, request.candidateK, selection.chunks->count, selected);
    const bool byLists = useLists(selection, request.plan, part);
    set.byLists |= byLists;
    const auto survive = byLists ? surviveLists : surviveCodes;
    const auto survivors = survive(selection, table->second, part, pool, request.deadline);
    addRefined(*codes, table->second, survivors, s, request.candidateK, pool, request.deadline, scored);
  }

  std::sort(scored.begin(), scored.end(), isBetter);
  const auto coded = std::find_if(scored.begin(), scored.end(), [](const Scored& one) { return one.coded; });
  const auto uncodedCount = size_t(coded - scored.begin());
  scored.resize(std::min(scored.size(), uncodedCount + request.candidateK));
  std::vector<uint32_t> order(scored.size());
  std::iota(order.begin(), order.end(), 0u);
  // Scored in order of position, for the sake of memory; the rank is remembered.
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Candidate &x = scored[a].candidate, &y = scored[b].candidate;
    return x.segment != y.segment ? x.segment < y.segment : x.chunk < y.chunk;
  });
  for (const uint32_t rank : order) {
    set.candidates.push_back(scored[rank].candidate);
    set.preselected.push_back({scored[rank].score, rank});
  }
  return set;
}

}  // namespace maxsimd
