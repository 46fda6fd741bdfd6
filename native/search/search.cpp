#include "search/search.h"

#include "device/residents.h"
#include "search/page_prefetch.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace maxsimd {
namespace {

/// Chunks that a thread scores between two checks of the deadline.
constexpr size_t blockChunks = 64;
/// Chunks of a part (`Search::score`). Threads wait for each other at its end, and its scores take memory.
constexpr size_t partChunks = 1u << 16;
/// A grouped search that finds too few documents takes this many times the candidates, at most twice.
constexpr uint32_t widening = 4;
constexpr uint32_t widenedMost = widening * widening;
/// A widened search computes at most this many products of a token vector with a query token: 0.1 s of one core with
/// AVX2.
constexpr double widenedProductsMost = 1u << 28;

/// Scores the candidates, and starts with no further block once `until` has passed. Returns how many are scored: they
/// are the first ones.
size_t scoreExactly(const Index& index, Pool& pool, const Deadline& deadline, const Query& query,
                    const std::vector<Selection>& selections, std::span<const Candidate> candidates,
                    Clock::time_point until, std::vector<float>& scores) {
  scores.resize(candidates.size());
  const size_t blocks = (scores.size() + blockChunks - 1) / blockChunks;
  const size_t done = pool.parallelFor(blocks, until, [&](size_t b) {
    deadline.check();
    Chunk chunks[blockChunks];
    const size_t first = b * blockChunks;
    const size_t count = std::min(blockChunks, scores.size() - first);
    prefetchPages(selections, candidates.data() + first, count);
    loadPlaces(selections, candidates.subspan(first, count));
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
  return std::min(done * blockChunks, scores.size());
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
  const double widest = double(std::max(request.candidateK, request.wanted())) * widenedMost;
  return std::max(request.candidateK, uint32_t(std::min({widest, affordable, double(live.chunks)})));
}

void addComponents(const Index& index, const Query& query, const std::vector<Selection>& selections,
                   const std::vector<Ranked>& top, SearchOutcome& outcome) {
  const PackedQuery& packed = query.packed();
  std::vector<float> similarities(packed.tokensPadded);
  std::vector<uint32_t> rows(packed.tokensPadded);
  for (const Ranked& ranked : top) {
    const Candidate& candidate = ranked.candidate;
    index.kernel().best(packed, exactChunk(selections[candidate.selection], candidate.chunk), similarities.data(),
                        rows.data());
    for (uint32_t i = 0; i < packed.tokens; ++i) {
      outcome.similarities.push_back(similarities[i] * packed.scales[i] + packed.offsets[i]);
      outcome.documentTokens.push_back(rows[i]);
    }
  }
}

/// Says where the results lie in the texts of their documents. Their records were found intact when they were scored.
void addPlaces(const std::vector<Selection>& selections, const std::vector<Ranked>& top, bool components,
               SearchOutcome& outcome) {
  for (size_t i = 0; i < top.size(); ++i) {
    const Candidate& candidate = top[i].candidate;
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
/// scores[i] belongs to candidate `first + i`.
bool deviceIsRight(const Index& index, const std::vector<Selection>& selections, const CandidateSet& set, size_t first,
                   std::span<const float> scores) {
  if (set.everyChunk) return true;
  for (size_t i = 0; i < scores.size(); ++i) {
    const uint32_t s = set.candidates[first + i].selection;
    if (!set.scoredOnDevice[s] || set.preselected[first + i].score == scores[i]) continue;
    // Rows that could not be read are zeros. That is not the device's fault.
    selections[s].snapshot.segment->requireRead(*selections[s].snapshot.mapping);
    index.residents()->distrust();
    return false;
  }
  return true;
}

/// Calls body(candidate) for every candidate of the set, in order.
template <typename Body>
void forEachCandidate(const CandidateSet& set, const std::vector<Selection>& selections, const Body& body) {
  for (const Candidate& candidate : set.candidates) body(candidate);
  if (!set.everyChunk) return;
  for (uint32_t s = 0; s < selections.size(); ++s) {
    const Bitmap& chunks = selections[s].chunks->chunks;
    chunks.forEach(0, chunks.size(), [&](uint32_t chunk) { body(Candidate{s, chunk}); });
  }
}

/// Throws `AbsentParts` with all parts that exact scoring would miss, so that they are fetched together.
void requirePresent(const CandidateSet& set, std::span<const Candidate> matched,
                    const std::vector<Selection>& selections) {
  std::vector<AbsentPart> absent;
  const auto collect = [&](const Candidate& candidate) {
    const Segment& segment = *selections[candidate.selection].snapshot.segment;
    segment.collectAbsent(segment.chunk(candidate.chunk).record, absent);
  };
  forEachCandidate(set, selections, collect);
  std::ranges::for_each(matched, collect);
  if (!absent.empty()) throw AbsentParts(std::move(absent));
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

Search::Search(Index& index, Pool& pool, IndexSearch request)
    : index_(index), pool_(pool), request_(std::move(request)) {}

bool Search::run(Clock::time_point until) {
  request_.deadline.check();
  auto now = Clock::now();
  do {
    const auto since = [&, start = now] { return millisecondsBetween(start, now = Clock::now()); };
    if (step_ == Step::filter) {
      filter();
      outcome_.filterMs += since();
    } else if (step_ == Step::choose) {
      choose();
      outcome_.candidatesMs += since();
    } else if (step_ == Step::score) {
      score(until);
      outcome_.exactMs += since();
    } else if (step_ == Step::match) {
      scoreMatched(until);
      outcome_.exactMs += since();
    } else {
      const bool hasEnded = rank();
      outcome_.exactMs += since();
      if (hasEnded) return true;
    }
  } while (now < until);
  return false;
}

void Search::filter() {
  selections_ = selectLive(index_.snapshot(), request_.generation, request_, request_.deadline);
  query_.emplace(index_.kernel(), request_.query, request_.offsets, index_.options().shape);
  if (request_.match) matched_.emplace(selections_, *request_.match, request_.deadline);
  if (matched_ && matched_->chunks().empty()) matched_.reset();
  if (request_.grouped) widestCandidateK_ = widestCandidateK(request_, liveOf(selections_));
  step_ = Step::choose;
}

void Search::choose() {
  set_ = chooseCandidates(index_, pool_, request_, *query_, selections_);
  while (dropUnreadCodes(index_, selections_)) {
    set_ = chooseCandidates(index_, pool_, request_, *query_, selections_);
    outcome_.codesLost = true;
  }
  if (matched_) matched_->restart();
  requirePresent(set_, matched_ ? matched_->chunks() : std::span<const Candidate>(), selections_);
  scored_ = 0;
  part_ = {};
  next_ = {};
  if (request_.grouped) {
    best_ = std::make_unique<BestDocuments>(request_.wanted(), agesOf_, [this](const Candidate& candidate) {
      return selections_[candidate.selection].snapshot.segment->chunk(candidate.chunk).record;
    });
  } else {
    best_ = std::make_unique<BestChunks>(request_.wanted(), agesOf_);
  }
  step_ = Step::score;
}

void Search::score(Clock::time_point until) {
  if (part_.empty()) part_ = nextPart();
  if (part_.empty()) {
    step_ = matched_ ? Step::match : Step::rank;
    return;
  }
  std::vector<float> scores;
  scores.resize(scoreExactly(index_, pool_, request_.deadline, *query_, selections_, part_, until, scores));
  if (!deviceIsRight(index_, selections_, set_, scored_, scores) && !std::exchange(deviceWasWrong_, true)) {
    // The second time the candidates are chosen without the device.
    step_ = Step::choose;
    return;
  }
  if (matched_) matched_->addOthers(part_.first(scores.size()), scores, scored_, *best_);
  else best_->add(part_.first(scores.size()), scores, scored_);
  scored_ += uint32_t(scores.size());
  part_ = part_.subspan(scores.size());
}

std::span<const Candidate> Search::nextPart() {
  if (!set_.everyChunk) {
    const auto left = std::span<const Candidate>(set_.candidates).subspan(scored_);
    return left.first(std::min(left.size(), partChunks));
  }
  gathered_.clear();
  for (; next_.selection < selections_.size(); next_ = {next_.selection + 1, 0}) {
    const Bitmap& chunks = selections_[next_.selection].chunks->chunks;
    for (; next_.chunk < chunks.size(); next_.chunk += Bitmap::wordBits) {
      if (gathered_.size() + Bitmap::wordBits > partChunks) return gathered_;
      chunks.forEach(next_.chunk, next_.chunk + Bitmap::wordBits,
                     [&](uint32_t chunk) { gathered_.push_back({next_.selection, chunk}); });
    }
  }
  return gathered_;
}

void Search::scoreMatched(Clock::time_point until) {
  const std::vector<Candidate> chunks = matched_->unscored();
  std::vector<float> scores;
  const size_t count = scoreExactly(index_, pool_, request_.deadline, *query_, selections_, chunks, until, scores);
  matched_->addScores(std::span(scores).first(count));
  if (count < chunks.size()) return;
  matched_->addAll(*best_);
  step_ = Step::rank;
}

bool Search::rank() {
  top_ = best_->take();
  if (request_.grouped && widen()) {
    deviceWasWrong_ = false;
    step_ = Step::choose;
    return false;
  }
  leaveOut();
  answer();
  return true;
}

/// Leaves out the chunks, or with `grouped` the documents, that are to be skipped.
void Search::leaveOut() {
  size_t skipped = 0;
  auto first = top_.begin();
  for (; first != top_.end(); ++first) {
    const bool isSame = first != top_.begin() && first->age.versionId == (first - 1)->age.versionId;
    if (!(isSame && request_.grouped) && skipped++ == request_.skip) break;
  }
  top_.erase(top_.begin(), first);
}

/// Takes more candidates if those before had too few documents and there are more.
bool Search::widen() {
  size_t documents = 0;
  for (size_t i = 0; i < top_.size(); ++i) documents += i == 0 || top_[i].age.versionId != top_[i - 1].age.versionId;
  if (documents >= request_.wanted() || request_.candidateK >= widestCandidateK_ ||
      !hasMoreDocuments(selections_, documents))
    return false;
  request_.candidateK = std::min(request_.candidateK * widening, widestCandidateK_);
  return true;
}

void Search::answer() {
  outcome_.preselected = !set_.preselected.empty();
  outcome_.plan = set_.plan;
  for (const Ranked& ranked : top_) outcome_.results.push_back(resultOf(ranked));
  addPlaces(selections_, top_, request_.components, outcome_);
  if (request_.components) addComponents(index_, *query_, selections_, top_, outcome_);
  for (const Selection& selection : selections_) {
    if (selection.chunks->count > 0) selection.snapshot.segment->requireRead(*selection.snapshot.mapping);
  }
  outcome_.candidateCount = uint32_t(set_.considered);
  if (!matched_) return;
  for (const Candidate& chunk : matched_->chunks()) {
    const bool isCandidate = matched_->find(chunk)->position != MatchedChunk::noPosition;
    // The device scored every chunk of its segments, and they count already.
    outcome_.candidateCount += !isCandidate && !set_.scoredOnDevice[chunk.selection];
  }
}

SearchOutcome::Result Search::resultOf(const Ranked& ranked) const {
  const auto& [score, age, position, candidate] = ranked;
  SearchOutcome::Result result{};
  result.versionId = age.versionId;
  result.chunkIndex = age.chunkIndex;
  result.score = score;
  const MatchedChunk* matched = matched_ ? matched_->find(candidate) : nullptr;
  result.maxsim = matched != nullptr ? matched->maxsim : score;
  result.spans = matched != nullptr ? matched->spans : 0;
  const uint32_t place = matched != nullptr ? matched->position : position;
  if (!outcome_.preselected) return result;
  const bool isCandidate = place != MatchedChunk::noPosition;
  result.candidateScore = isCandidate ? set_.preselected[place].score : std::numeric_limits<float>::quiet_NaN();
  result.candidateRank = isCandidate ? set_.preselected[place].rank : UINT32_MAX;
  return result;
}

SearchOutcome search(Index& index, Pool& pool, const IndexSearch& request) {
  Search whole(index, pool, request);
  whole.run();
  return std::move(whole.outcome());
}

}  // namespace maxsimd
