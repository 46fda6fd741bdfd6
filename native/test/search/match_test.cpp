// Searches with spans against a plain evaluator: random documents, terms, filters and changes, in every plan.
#include "device/residents.h"
#include "runtime/engine.h"
#include "search/search.h"
#include "test/device/emulated_library.h"
#include "test/sample.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 24, tokens = 4;
/// Terms 0 to 2 are those of filters, which many documents have. The others are those of spans; few have the later ones.
constexpr uint32_t filterTerms = 3, spanTerms = 40;

using Key = std::pair<uint64_t, uint32_t>;

struct Document {
  RecordParts parts;
  std::set<Term> terms;
  uint64_t segment;
  uint32_t record;
  uint64_t born;
  uint64_t died = generationNever;

  bool visibleAt(uint64_t generation) const { return born <= generation && generation < died; }
};

/// A chunk as the evaluator knows it.
struct Evaluated {
  float score;
  float maxsim;
  uint64_t spans;
  Key key;

  bool operator<(const Evaluated& other) const { return score != other.score ? score > other.score : key < other.key; }
  bool operator==(const Evaluated&) const = default;
};

struct Question {
  IndexSearch request;
  std::vector<std::vector<Term>> spans;
};

Term spanTerm(Random& random) {
  // The square makes the first ones frequent.
  const double at = std::uniform_real_distribution<>(0, 1)(random);
  return term(uint8_t(filterTerms + at * at * spanTerms));
}

class World;
SearchOutcome run(World& world, const IndexSearch& request, bool givesWay);

class World {
 public:
  World(Random& random, bool hasDevice)
      : random_(random),
        clusters_(random, dim, 40),
        residents_(emulatedLibrary(), 0, 0, {std::chrono::hours(1), std::chrono::hours(1)}),
        engine_(2, "auto"),
        index_(engine_.kernel(), IndexOptions{{dim}, 400}, hasDevice ? &residents_ : nullptr) {
    begin();
  }

  Engine& engine() { return engine_; }
  Index& index() { return index_; }
  uint64_t generation() const { return generation_; }

  /// One of the changes that happen to an index.
  void change() {
    add(between(random_, 5, 60));
    switch (between(random_, 0, 3)) {
      case 0: seal(); break;
      case 1: merge(); break;
      case 2: openAgain(); break;
      default: break;
    }
    // A search asks for copies in the memory of the device.
    run(*this, question().request, false);
    residents_.settle();
  }

  Question question() const {
    Question question{searchOf(query(), tokens, between(random_, 1, 30), between(random_, 1, 60), plan()), {}};
    IndexSearch& request = question.request;
    request.generation = between(random_, 0, 3) == 0 ? between(random_, 1, uint32_t(generation_)) : generation_;
    request.grouped = between(random_, 0, 1) == 1;
    if (between(random_, 0, 2) == 0) request.skip = between(random_, 0, 12);
    if (between(random_, 0, 2) == 0) request.terms = {term(uint8_t(random_() % filterTerms))};
    if (between(random_, 0, 2) == 0) request.where = either();
    question.spans.resize(between(random_, 1, 8));
    for (auto& terms : question.spans) {
      for (uint32_t t = between(random_, 1, 3); t > 0; --t) terms.push_back(spanTerm(random_));
    }
    request.match.emplace(SpanMatch{spansOf(question), {}});
    for (size_t span = 0; span < question.spans.size(); ++span)
      request.match->bonuses.push_back(std::uniform_real_distribution<float>(0, 1)(random_));
    return question;
  }

  static Spans spansOf(const Question& question) {
    std::vector<Term> terms;
    std::vector<uint32_t> counts;
    for (const auto& span : question.spans) {
      terms.insert(terms.end(), span.begin(), span.end());
      counts.push_back(uint32_t(span.size()));
    }
    return Spans::of(terms, counts);
  }

  /// Every chunk that the filter leaves, best first.
  std::vector<Evaluated> evaluate(const Question& question) const {
    const Query query(index_.kernel(), question.request.query, question.request.offsets, RowShape(dim));
    std::vector<Evaluated> ranking;
    for (const Document& document : documents_) {
      if (!document.visibleAt(question.request.generation) || !passes(document, question.request)) continue;
      const auto scores = maxsims(query, document.parts);
      const size_t best = size_t(std::ranges::max_element(scores) - scores.begin());
      const uint64_t spans = spansIn(document, question);
      float bonus = 0;
      for (size_t s = 0; s < question.spans.size(); ++s) {
        if (spans >> s & 1) bonus += question.request.match->bonuses[s];
      }
      for (uint32_t c = 0; c < scores.size(); ++c) {
        const bool isBest = c == best;
        ranking.push_back(
            {isBest ? scores[c] + bonus : scores[c], scores[c], isBest ? spans : 0, {document.parts.versionId, c}});
      }
    }
    std::sort(ranking.begin(), ranking.end());
    return ranking;
  }

  bool isMatched(uint64_t versionId, const Question& question) const {
    return spansIn(documents_[versionId], question) != 0;
  }

  void checkCounts(const Question& question) const {
    const IndexSearch& request = question.request;
    const SpanCounts counts = countSpans(index_, request.generation, request.match->spans, request, {});
    uint64_t live = 0;
    std::vector<SpanCounts::Span> expected(question.spans.size());
    for (const Document& document : documents_) {
      if (!document.visibleAt(request.generation)) continue;
      ++live;
      const uint64_t spans = spansIn(document, question);
      for (size_t s = 0; s < expected.size(); ++s) {
        if ((spans >> s & 1) == 0) continue;
        ++expected[s].documents;
        if (!passes(document, request)) continue;
        expected[s].chunks += document.parts.chunkRows.size();
        expected[s].rows += document.parts.rows();
      }
    }
    CHECK(counts.documents == live && counts.spans.size() == expected.size());
    for (size_t s = 0; s < expected.size(); ++s) {
      const auto [found, chunks, rows] = counts.spans[s];
      if (expected[s].documents > spanDocumentsMost(live)) CHECK(found > spanDocumentsMost(live) && chunks == 0);
      else CHECK(found == expected[s].documents && chunks == expected[s].chunks && rows == expected[s].rows);
      isAbove = isAbove || expected[s].documents > spanDocumentsMost(live);
    }
  }

  /// Whether some span has been above `spanDocumentsMost`.
  mutable bool isAbove = false;

 private:
  void begin() {
    segment_ = ++segments_;
    index_.createSegment(segment_, path(segment_));
  }

  std::string path(uint64_t segment) const { return directory_.file(std::to_string(segment) + ".seg"); }

  std::vector<float> query() const {
    std::vector<float> query;
    for (uint32_t i = 0; i < tokens; ++i) {
      const auto vector = clusters_.near(random_, uint32_t(random_() % clusters_.centres.size()));
      query.insert(query.end(), vector.begin(), vector.end());
    }
    return query;
  }

  Plan plan() const {
    const Plan plans[] = {Plan::automatic, Plan::automatic, Plan::exact, Plan::codes, Plan::lists, Plan::graph};
    return plans[random_() % 6];
  }

  /// Documents with either of two of the filters' terms.
  static Condition either() {
    std::vector<uint8_t> bytes{1, 2, 0};
    for (const uint8_t each : {0, 1}) {
      const Term one = term(each);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return readCondition(bytes);
  }

  static bool passes(const Document& document, const IndexSearch& request) {
    const auto has = [&document](const Term& one) { return document.terms.contains(one); };
    return (!request.terms || std::ranges::all_of(*request.terms, has)) &&
           (!request.where || has(term(0)) || has(term(1)));
  }

  static uint64_t spansIn(const Document& document, const Question& question) {
    uint64_t spans = 0;
    for (size_t s = 0; s < question.spans.size(); ++s) {
      const auto has = [&document](const Term& one) { return document.terms.contains(one); };
      if (std::ranges::any_of(question.spans[s], has)) spans |= uint64_t(1) << s;
    }
    return spans;
  }

  std::vector<float> maxsims(const Query& query, const RecordParts& parts) const {
    std::vector<uint16_t> scales = parts.scales;
    scales.resize(scales.size() + readPaddingBytes);
    std::vector<Chunk> chunks;
    uint32_t row = 0;
    for (const uint32_t rows : parts.chunkRows) {
      chunks.push_back({parts.vectors.data() + row * dim, scales.data() + row, rows});
      row += rows;
    }
    std::vector<float> scores(chunks.size());
    index_.kernel().maxsim(query.packed(), chunks.data(), chunks.size(), scores.data());
    return scores;
  }

  /// Adds documents, some of which repeat the rows of an earlier one, and deletes some.
  void add(uint32_t count) {
    std::vector<Index::LifespanChange> born, died;
    ++generation_;
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<uint32_t> chunkRows(between(random_, 1, 13));
      for (uint32_t& rows : chunkRows) rows = between(random_, 1, 4);
      std::set<Term> terms;
      for (uint8_t t = 0; t < filterTerms; ++t) {
        if (random_() % 2 == 0) terms.insert(term(t));
      }
      for (uint32_t t = between(random_, 0, 4); t > 0; --t) terms.insert(spanTerm(random_));
      RecordParts parts = randomRecord(random_, clusters_, documents_.size(), chunkRows, {terms.begin(), terms.end()});
      if (!documents_.empty() && random_() % 4 == 0) repeatRows(parts);
      const uint32_t record = index_.append(segment_, parts);
      documents_.push_back({std::move(parts), std::move(terms), segment_, record, generation_});
      born.push_back({segment_, record});
    }
    for (Document& document : documents_) {
      if (document.born == generation_ || document.died != generationNever || random_() % 20 != 0) continue;
      document.died = generation_;
      died.push_back({document.segment, document.record});
    }
    index_.publish(generation_, born, died);
  }

  /// Every chunk becomes equal to the first chunk of another document.
  void repeatRows(RecordParts& parts) const {
    const RecordParts& other = documents_[random_() % documents_.size()].parts;
    const uint32_t rows = other.chunkRows[0];
    RecordParts repeated = parts;
    repeated.chunkRows.assign(parts.chunkRows.size(), rows);
    repeated.vectors.clear();
    repeated.scales.clear();
    for (size_t c = 0; c < parts.chunkRows.size(); ++c) {
      repeated.vectors.insert(repeated.vectors.end(), other.vectors.begin(), other.vectors.begin() + rows * dim);
      repeated.scales.insert(repeated.scales.end(), other.scales.begin(), other.scales.begin() + rows);
    }
    repeated.vectors.resize(repeated.vectors.size() + readPaddingBytes);
    repeated.ranges.clear();
    repeated.places.clear();
    parts = std::move(repeated);
  }

  void seal() {
    index_.seal(segment_);
    if (random_() % 3 != 0) index_.buildCodes(segment_, {});
    begin();
  }

  /// Merges all segments into one with codes.
  void merge() {
    seal();
    const uint64_t target = segment_;
    std::map<uint64_t, std::vector<uint32_t>> bySegment;
    for (const Document& document : documents_) bySegment[document.segment].push_back(document.record);
    std::map<std::pair<uint64_t, uint32_t>, uint32_t> moved;
    for (auto& [from, records] : bySegment) {
      std::sort(records.begin(), records.end());
      const auto copies = index_.copyRecords(from, records, target, {});
      for (size_t r = 0; r < records.size(); ++r) moved[{from, records[r]}] = copies[r];
    }
    index_.seal(target);
    for (const auto& [from, records] : bySegment) {
      index_.copyLifespans(from, records, target, moved.at({from, records[0]}));
      index_.dropSegment(from);
    }
    for (Document& document : documents_) {
      document.record = moved.at({document.segment, document.record});
      document.segment = target;
    }
    index_.buildCodes(target, {});
    begin();
  }

  /// Opens a segment again, an active one with what it had, and a sealed one perhaps without its postings.
  void openAgain() {
    const uint64_t segment = documents_[random_() % documents_.size()].segment;
    const bool isSealed = segment != segment_;
    index_.dropSegment(segment);
    if (isSealed && random_() % 2 == 0) unlink((path(segment) + ".postings").c_str());
    std::vector<Index::LifespanLoad> loads;
    for (const Document& d : documents_) {
      if (d.segment == segment) loads.push_back({{segment, d.record}, d.parts.versionId, d.born, d.died});
    }
    index_.openSegment(segment, path(segment), uint32_t(loads.size()), isSealed);
    index_.loadLifespans(loads);
  }

  Random& random_;
  const TemporaryDirectory directory_;
  const Clusters clusters_;
  Residents residents_;
  Engine engine_;
  Index index_;
  std::vector<Document> documents_;
  uint64_t generation_ = 0;
  uint64_t segments_ = 0;
  uint64_t segment_ = 0;
};

/// The part of a ranking that a search returns.
std::vector<Evaluated> pageOf(const std::vector<Evaluated>& ranking, const IndexSearch& request) {
  std::vector<Evaluated> page;
  if (!request.grouped) {
    for (size_t i = request.skip; i < std::min<size_t>(ranking.size(), request.wanted()); ++i)
      page.push_back(ranking[i]);
    return page;
  }
  std::vector<std::vector<Evaluated>> groups;
  std::map<uint64_t, size_t> groupOf;
  for (const Evaluated& chunk : ranking) {
    const auto [at, isNew] = groupOf.try_emplace(chunk.key.first, groups.size());
    if (isNew) groups.emplace_back();
    if (groups[at->second].size() < chunksOfDocumentMost) groups[at->second].push_back(chunk);
  }
  for (size_t g = request.skip; g < std::min<size_t>(groups.size(), request.wanted()); ++g)
    page.insert(page.end(), groups[g].begin(), groups[g].end());
  return page;
}

std::vector<Evaluated> rowsOf(const SearchOutcome& outcome) {
  std::vector<Evaluated> rows;
  for (const SearchOutcome::Result& r : outcome.results)
    rows.push_back({r.score, r.maxsim, r.spans, {r.versionId, r.chunkIndex}});
  return rows;
}

SearchOutcome run(World& world, const IndexSearch& request, bool givesWay) {
  Search search(world.index(), world.engine().compute(), request);
  while (!search.run(givesWay ? Clock::time_point::min() : Clock::time_point::max())) continue;
  return std::move(search.outcome());
}

/// The answer of a search that chose candidates, and which candidates the same search without spans has.
void checkPreselected(World& world, const Question& question, const SearchOutcome& outcome,
                      const std::vector<Evaluated>& ranking) {
  IndexSearch request = question.request;
  request.match.reset();
  request.skip = 0;
  request.topK = 10'000;
  const SearchOutcome without = run(world, request, false);
  if (outcome.plan == Plan::device || without.plan == Plan::device) return;
  std::map<Key, std::pair<float, uint32_t>> candidates;
  for (const auto& r : without.results) candidates[{r.versionId, r.chunkIndex}] = {r.candidateScore, r.candidateRank};
  std::vector<Evaluated> left;
  uint32_t added = 0;
  for (const Evaluated& chunk : ranking) {
    const bool isCandidate = candidates.contains(chunk.key);
    const bool isMatched = world.isMatched(chunk.key.first, question);
    if (isCandidate || isMatched) left.push_back(chunk);
    added += isMatched && !isCandidate;
  }
  CHECK(rowsOf(outcome) == pageOf(left, question.request));
  CHECK(outcome.candidateCount == without.candidateCount + added && outcome.preselected == without.preselected);
  for (const auto& r : outcome.results) {
    const auto found = candidates.find({r.versionId, r.chunkIndex});
    if (!outcome.preselected) CHECK(r.candidateScore == 0 && r.candidateRank == 0);
    else if (found == candidates.end()) CHECK(std::isnan(r.candidateScore) && r.candidateRank == UINT32_MAX);
    else CHECK(std::pair(r.candidateScore, r.candidateRank) == found->second);
  }
}

void checkAnswer(World& world, const Question& question, const SearchOutcome& outcome) {
  const std::vector<Evaluated> ranking = world.evaluate(question);
  const std::vector<Evaluated> page = pageOf(ranking, question.request), found = rowsOf(outcome);
  if (question.request.plan == Plan::exact) {
    CHECK(found == page && outcome.candidateCount == ranking.size());
    return;
  }
  // Every chunk has its right score, and no chunk of a matched document is missing that belongs to the answer.
  std::map<Key, Evaluated> known;
  for (const Evaluated& chunk : ranking) known.emplace(chunk.key, chunk);
  for (const Evaluated& chunk : found) CHECK(known.at(chunk.key) == chunk);
  if (question.request.skip == 0) {
    for (const Evaluated& chunk : page) {
      if (world.isMatched(chunk.key.first, question)) CHECK(std::ranges::find(found, chunk) != found.end());
    }
  }
  if (!question.request.grouped) checkPreselected(world, question, outcome, ranking);
}

const Case match("search", "documents with spans of a query are found and ranked as a plain evaluator does",
                 [](Random& random) {
                   constexpr int worlds = 6, plansMin = 5;
                   std::map<Plan, int> plans;
                   bool isAbove = false;
                   for (int round = 0; round < rounds(worlds); ++round) {
                     // An emulated device is slow.
                     const bool hasDevice = round == worlds - 1;
                     World world(random, hasDevice);
                     // Few of its questions may be for the device. Then it goes on.
                     const auto isShort = [&] { return hasDevice && plans[Plan::device] <= plansMin; };
                     for (int change = 0; change < (hasDevice ? 4 : 10) || (isShort() && change < 40); ++change) {
                       world.change();
                       for (int asked = 0; asked < (hasDevice ? 25 : 100); ++asked) {
                         const Question question = world.question();
                         world.checkCounts(question);
                         const SearchOutcome outcome = run(world, question.request, random() % 2 == 0);
                         checkAnswer(world, question, outcome);
                         ++plans[outcome.plan];
                       }
                     }
                     isAbove = isAbove || world.isAbove;
                   }
                   if (rounds(worlds) < worlds) return;
                   CHECK(isAbove);
                   for (const Plan plan : {Plan::exact, Plan::codes, Plan::lists, Plan::device}) CHECK(plans[plan] > plansMin);
                 });

}  // namespace
}  // namespace maxsimd::test
