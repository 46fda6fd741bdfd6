#include "engine/search.h"

#include "engine/candidates.h"
#include "engine/prefetch.h"
#include "engine/query.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// Chunks scored between two looks at the deadline, and the unit of sharing among threads.
constexpr size_t blockChunks = 64;
/// The plan's budget is stated for this many query tokens.
constexpr uint64_t budgetTokens = 32;

void scoreExactly(const Index& index, Pool& pool, const SearchRequest& request, const Query& query,
                  const std::vector<Selection>& selections, const std::vector<Candidate>& candidates,
                  std::vector<float>& scores) {
  scores.resize(candidates.size());
  const size_t blocks = (scores.size() + blockChunks - 1) / blockChunks;
  pool.parallelFor(blocks, [&](size_t b) {
    request.deadline.check();
    Chunk chunks[blockChunks];
    const size_t first = b * blockChunks;
    const size_t count = std::min(blockChunks, scores.size() - first);
    for (size_t i = 0; i < count; ++i) {
      const Candidate& candidate = candidates[first + i];
      chunks[i] = exactChunk(selections[candidate.segment], candidate.chunk);
    }
    index.kernel().maxsim(query.packed(), chunks, count, scores.data() + first);
  });
}

/// Positions of the topK best scores and of all that tie with the last of them, best first.
std::vector<uint32_t> selectTop(const std::vector<float>& scores, uint32_t topK) {
  std::vector<uint32_t> order;
  if (scores.size() > topK) {
    std::vector<float> copy = scores;
    std::nth_element(copy.begin(), copy.begin() + (topK - 1), copy.end(), std::greater<float>());
    const float threshold = copy[topK - 1];
    for (uint32_t i = 0; i < scores.size(); ++i) {
      if (scores[i] >= threshold) order.push_back(i);
    }
  } else {
    for (uint32_t i = 0; i < scores.size(); ++i) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  return order;
}

void addComponents(const Index& index, const Query& query, const std::vector<Selection>& selections,
                   const std::vector<Candidate>& candidates, const std::vector<uint32_t>& order,
                   SearchOutcome& outcome) {
  const PackedQuery& packed = query.packed();
  std::vector<float> similarities(packed.tokensPadded);
  std::vector<uint32_t> rows(packed.tokensPadded);
  for (const uint32_t position : order) {
    const Candidate& candidate = candidates[position];
    index.kernel().best(packed, exactChunk(selections[candidate.segment], candidate.chunk), similarities.data(),
                        rows.data());
    for (uint32_t i = 0; i < packed.tokens; ++i) {
      outcome.similarities.push_back(similarities[i] * packed.scales[i] + packed.offsets[i]);
      outcome.documentTokens.push_back(rows[i]);
    }
  }
}

/// Whether all selected chunks are to be scored exactly.
bool scansExactly(const Index& index, const SearchRequest& request, const std::vector<Selection>& selections) {
  if (request.plan == Plan::exact) return true;
  uint64_t chunks = 0, rows = 0;
  bool coded = false;
  for (const Selection& selection : selections) {
    chunks += selection.chunks->count;
    rows += selection.chunks->rows;
    coded |= selection.snapshot.codes != nullptr && selection.chunks->count > 0;
  }
  if (!coded || chunks <= request.candidateK) return true;
  if (request.plan != Plan::automatic) return false;
  const uint64_t tokens = std::max<uint64_t>(paddedTokens(uint32_t(request.offsets.size())), budgetTokens / 2);
  return rows * tokens <= index.options().exactTokenVectorsMax * budgetTokens;
}

}  // namespace

const char* planName(Plan plan) {
  switch (plan) {
    case Plan::automatic: return "auto";
    case Plan::exact: return "exact";
    case Plan::codes: return "codes";
    case Plan::lists: return "lists";
  }
  return "exact";
}

SearchOutcome search(const Index& index, Pool& pool, const SearchRequest& request) {
  request.deadline.check();
  const auto start = Clock::now();
  SearchOutcome outcome;
  const std::vector<Selection> selections =
      selectLive(index.snapshot(), request.generation, request.terms, request.deadline);
  const Query query(index.kernel(), request.query, request.offsets, index.options().dim);
  const auto filtered = Clock::now();

  const CandidateSet set = scansExactly(index, request, selections)
                               ? everyChunk(selections)
                               : bestByCodes(index.kernel(), selections, pool, request, query.packed());
  outcome.preselected = !set.preselected.empty();
  outcome.plan = !outcome.preselected ? Plan::exact : set.byLists ? Plan::lists : Plan::codes;
  const auto chosen = Clock::now();

  std::vector<float> scores;
  prefetchCold(selections, set.candidates);
  scoreExactly(index, pool, request, query, selections, set.candidates, scores);
  const std::vector<uint32_t> order = selectTop(scores, request.topK);
  for (const uint32_t position : order) {
    const Candidate& candidate = set.candidates[position];
    const Segment& segment = *selections[candidate.segment].snapshot.segment;
    const RecordEntry& record = segment.record(segment.chunk(candidate.chunk).record);
    SearchOutcome::Result result{record.versionId, candidate.chunk - record.firstChunk, scores[position], 0.0f, 0};
    if (outcome.preselected) {
      result.candidateScore = set.preselected[position].score;
      result.candidateRank = set.preselected[position].rank;
    }
    outcome.results.push_back(result);
  }
  if (request.components) addComponents(index, query, selections, set.candidates, order, outcome);
  outcome.candidateCount = uint32_t(set.candidates.size());
  const auto end = Clock::now();
  outcome.filterMs = millisecondsBetween(start, filtered);
  outcome.candidatesMs = millisecondsBetween(filtered, chosen);
  outcome.exactMs = millisecondsBetween(chosen, end);
  return outcome;
}

}  // namespace maxsimd
