#include "engine/search.h"

#include "engine/candidates.h"
#include "engine/query.h"

#include <algorithm>

namespace maxsimd {
namespace {

/// Chunks scored between two looks at the deadline, and the unit of sharing among threads.
constexpr size_t blockChunks = 64;
/// The plan's budget is stated for this many query tokens.
constexpr uint64_t budgetTokens = 32;

void scoreExactly(const Index& index, Pool& pool, const SearchRequest& request, const Query& query,
                  const CandidateSet& set, std::vector<float>& scores) {
  scores.resize(set.candidates.size());
  const size_t blocks = (scores.size() + blockChunks - 1) / blockChunks;
  pool.parallelFor(blocks, [&](size_t b) {
    request.deadline.check();
    Chunk chunks[blockChunks];
    const size_t first = b * blockChunks;
    const size_t count = std::min(blockChunks, scores.size() - first);
    for (size_t i = 0; i < count; ++i) chunks[i] = set.exactChunk(set.candidates[first + i]);
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

void addComponents(const Index& index, const Query& query, const CandidateSet& set,
                   const std::vector<uint32_t>& order, SearchOutcome& outcome) {
  const PackedQuery& packed = query.packed();
  std::vector<float> similarities(packed.tokensPadded);
  std::vector<uint32_t> rows(packed.tokensPadded);
  for (const uint32_t position : order) {
    index.kernel().best(packed, set.exactChunk(set.candidates[position]), similarities.data(), rows.data());
    for (uint32_t i = 0; i < packed.tokens; ++i) {
      outcome.similarities.push_back(similarities[i] * packed.scales[i] + packed.offsets[i]);
      outcome.documentTokens.push_back(rows[i]);
    }
  }
}

Plan choosePlan(const Index& index, const SearchRequest& request, const CandidateSet& set) {
  if (!index.options().codebook) return Plan::exact;
  if (request.plan != Plan::automatic) return request.plan;
  const uint64_t tokens = std::max<uint64_t>(paddedTokens(uint32_t(request.offsets.size())), budgetTokens / 2);
  if (set.rows * tokens <= index.options().exactTokenVectorsMax * budgetTokens) return Plan::exact;
  return worthGraphs(set) ? Plan::graph : Plan::codes;
}

}  // namespace

const char* planName(Plan plan) {
  switch (plan) {
    case Plan::automatic: return "auto";
    case Plan::exact: return "exact";
    case Plan::codes: return "codes";
    case Plan::graph: return "graph";
  }
  return "exact";
}

SearchOutcome search(const Index& index, Pool& pool, const SearchRequest& request) {
  request.deadline.check();
  const auto start = Clock::now();
  SearchOutcome outcome;
  CandidateSet set = collectLive(index.snapshot(), request.generation, request.terms, request.deadline);
  const Query query(index.kernel(), request.query, request.offsets, index.options().dim);
  const auto filtered = Clock::now();

  outcome.plan = choosePlan(index, request, set);
  std::vector<Preselected> preselected;
  if (outcome.plan != Plan::exact && set.candidates.size() > request.candidateK) {
    if (outcome.plan == Plan::graph) keepGraphNeighbours(set, index, pool, request);
    preselected = keepBestByCodes(set, *index.options().codebook, pool, request, query.packed());
    outcome.preselected = true;
  }
  const auto chosen = Clock::now();

  std::vector<float> scores;
  scoreExactly(index, pool, request, query, set, scores);
  const std::vector<uint32_t> order = selectTop(scores, request.topK);
  for (const uint32_t position : order) {
    const Candidate& candidate = set.candidates[position];
    const Segment& segment = *set.snapshots[candidate.segment].segment;
    const RecordEntry& record = segment.record(segment.chunk(candidate.chunk).record);
    SearchOutcome::Result result{record.versionId, candidate.chunk - record.firstChunk, scores[position], 0.0f, 0};
    if (outcome.preselected) {
      result.candidateScore = preselected[position].score;
      result.candidateRank = preselected[position].rank;
    }
    outcome.results.push_back(result);
  }
  if (request.components) addComponents(index, query, set, order, outcome);
  outcome.candidateCount = uint32_t(set.candidates.size());
  const auto end = Clock::now();
  outcome.filterMs = millisecondsBetween(start, filtered);
  outcome.candidatesMs = millisecondsBetween(filtered, chosen);
  outcome.exactMs = millisecondsBetween(chosen, end);
  return outcome;
}

}  // namespace maxsimd
