// Searches that give way: the same results as of a search that does not, whatever happens between two slices.
#include "runtime/engine.h"
#include "search/search.h"
#include "test/sample.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 24;
constexpr uint32_t tokens = 6;

/// Three segments: two with codes, of which one has few chunks, and an active one.
struct Sliced {
  TemporaryDirectory directory;
  Clusters clusters;
  Engine engine;
  Index index;

  explicit Sliced(Random& random, uint32_t threads)
      : clusters(random, dim, 60), engine(threads, "auto"), index(engine.kernel(), {{dim}, 100}) {
    uint64_t version = 1;
    uint64_t generation = 1;
    for (const auto& [segment, documents] : std::map<uint64_t, uint32_t>{{1, 300}, {2, 40}, {3, 120}}) {
      index.createSegment(segment, directory.file(std::to_string(segment) + ".seg"));
      std::vector<Index::LifespanChange> born;
      for (uint32_t d = 0; d < documents; ++d, ++version) {
        std::vector<uint32_t> chunkRows(between(random, 1, 14));
        for (uint32_t& rows : chunkRows) rows = between(random, 1, 6);
        const auto parts = randomRecord(random, clusters, version, chunkRows, {term(uint8_t(version % 3))});
        born.push_back({segment, index.append(segment, parts)});
      }
      index.publish(generation++, born, {});
      if (segment == 3) continue;
      index.seal(segment);
      index.buildCodes(segment, {});
    }
  }

  IndexSearch request(Random& random, Plan plan) const {
    std::vector<float> query;
    for (uint32_t i = 0; i < tokens; ++i) {
      const auto vector = clusters.near(random, uint32_t(random() % clusters.centres.size()));
      query.insert(query.end(), vector.begin(), vector.end());
    }
    IndexSearch search = searchOf(query, tokens, between(random, 1, 40), between(random, 1, 60), plan);
    search.generation = 3;
    search.grouped = between(random, 0, 1) == 1;
    search.components = between(random, 0, 1) == 1;
    if (between(random, 0, 2) == 0) search.terms = {term(uint8_t(random() % 3))};
    return search;
  }

  /// Gives way wherever it can. `meanwhile` runs before each slice but the first.
  SearchOutcome inSlices(const IndexSearch& request, size_t& slices, const std::function<void()>& meanwhile = [] {}) {
    Search search(index, engine.compute(), request);
    for (slices = 1; !search.run(Clock::time_point::min()); ++slices) meanwhile();
    return std::move(search.outcome());
  }
};

using Row = std::tuple<uint64_t, uint32_t, float, float, uint32_t, uint32_t, uint32_t>;

std::vector<Row> rowsOf(const SearchOutcome& outcome) {
  std::vector<Row> rows;
  for (const SearchOutcome::Result& r : outcome.results)
    rows.emplace_back(r.versionId, r.chunkIndex, r.score, r.candidateScore, r.candidateRank, r.rangeStart, r.rangeEnd);
  return rows;
}

void checkSame(const SearchOutcome& a, const SearchOutcome& b) {
  CHECK(rowsOf(a) == rowsOf(b));
  CHECK(a.candidateCount == b.candidateCount && a.plan == b.plan && a.preselected == b.preselected);
  CHECK(a.similarities == b.similarities && a.documentTokens == b.documentTokens && a.rowPlaces == b.rowPlaces);
}

const Case same("search", "a search that gives way after every block finds what a whole one finds", [](Random& random) {
  for (const uint32_t threads : {1, 3}) {
    Sliced sliced(random, threads);
    size_t most = 0, sliceCount = 0;
    for (const Plan plan : {Plan::automatic, Plan::exact, Plan::codes, Plan::lists}) {
      for (int round = 0; round < rounds(30); ++round) {
        const IndexSearch request = sliced.request(random, plan);
        const SearchOutcome whole = search(sliced.index, sliced.engine.compute(), request);
        checkSame(sliced.inSlices(request, sliceCount), whole);
        most = std::max(most, sliceCount);
      }
    }
    // A slice for each of the 50 blocks or so of an exact search, and some before and after them.
    CHECK(most > 30);
  }
});

const Case skipped("search", "a search that skips the best finds the rest of a whole one", [](Random& random) {
  Sliced sliced(random, 2);
  for (const Plan plan : {Plan::automatic, Plan::exact, Plan::codes, Plan::lists}) {
    for (int round = 0; round < rounds(30); ++round) {
      IndexSearch request = sliced.request(random, plan);
      request.candidateK = 2000;
      const SearchOutcome whole = search(sliced.index, sliced.engine.compute(), request);
      const uint32_t wanted = request.topK;
      request.skip = between(random, 0, wanted - 1);
      request.topK = wanted - request.skip;
      const SearchOutcome page = search(sliced.index, sliced.engine.compute(), request);
      std::vector<Row> rows;
      std::set<uint64_t> documents;
      size_t chunks = 0;
      for (const Row& row : rowsOf(whole)) {
        documents.insert(std::get<0>(row));
        chunks += 1;
        if ((request.grouped ? documents.size() : chunks) > request.skip) rows.push_back(row);
      }
      CHECK(rowsOf(page) == rows);
      const size_t components = request.components ? rows.size() : 0;
      CHECK(page.similarities.size() == components * tokens && page.rowPlaces.size() == components);
    }
  }
});

const Case snapshot("search", "a search that gives way keeps its snapshot", [](Random& random) {
  for (int round = 0; round < rounds(6); ++round) {
    Sliced sliced(random, 2);
    IndexSearch request = sliced.request(random, Plan::exact);
    request.terms.reset();
    request.topK = 500;
    const SearchOutcome whole = search(sliced.index, sliced.engine.compute(), request);
    size_t slices = 0;
    int step = 0;
    const SearchOutcome later = sliced.inSlices(request, slices, [&] {
      if (++step == 2) {
        // A merge, and the deletion of some of what it copied.
        std::vector<uint32_t> records(40);
        for (uint32_t r = 0; r < 40; ++r) records[r] = r;
        sliced.index.createSegment(4, sliced.directory.file("4.seg"));
        sliced.index.copyRecords(2, records, 4, {});
        sliced.index.copyLifespans(2, records, 4, 0);
        sliced.index.dropSegment(2);
      }
      if (step == 3) sliced.index.publish(4, {}, std::vector<Index::LifespanChange>{{1, 0}, {1, 7}, {4, 3}});
      if (step == 4) sliced.index.seal(3);
      if (step == 5) sliced.index.dropSegment(1);
    });
    CHECK(step > 5);
    checkSame(later, whole);
    // One that begins now sees what has changed.
    CHECK(rowsOf(search(sliced.index, sliced.engine.compute(), request)) != rowsOf(whole));
  }
});

const Case ends("search", "a search that gives way ends at its deadline", [](Random& random) {
  Sliced sliced(random, 2);
  IndexSearch request = sliced.request(random, Plan::exact);
  request.deadline.at = Clock::now() + std::chrono::hours(1);
  std::atomic<bool> stopping{false};
  request.deadline.stopping = &stopping;
  Search search(sliced.index, sliced.engine.compute(), request);
  CHECK(!search.run(Clock::time_point::min()));
  CHECK(!search.run(Clock::time_point::min()));
  stopping = true;
  CHECK_ERROR(search.run(Clock::time_point::min()), ErrorCode::deadlineExceeded);
});

const Case parts("search", "a search of more chunks than one part finds the best wherever they are",
                 [](Random& random) {
                   TemporaryDirectory directory;
                   const Clusters clusters(random, dim, 60);
                   Engine engine(2, "auto");
                   Index index(engine.kernel(), {{dim}, 100});
                   index.createSegment(1, directory.file("1.seg"));
                   // 140 documents of 500 chunks. Some have the same chunk, which the query asks for.
                   constexpr uint32_t documents = 140, chunks = 500;
                   const std::vector<uint32_t> places{0, 499, 65'499, 65'500, 65'535, 65'536, 65'999, 69'999};
                   std::vector<float> query;
                   std::vector<Index::LifespanChange> born;
                   for (uint32_t d = 0; d < documents; ++d) {
                     RecordParts record = randomRecord(random, clusters, d + 1, std::vector<uint32_t>(chunks, 1));
                     for (const uint32_t place : places) {
                       if (place / chunks != d) continue;
                       // A row longer than all others.
                       for (uint32_t i = 0; i < dim; ++i)
                         record.vectors[place % chunks * dim + i] = int8_t(i % 2 == 0 ? 120 : -120);
                       record.scales[place % chunks] = floatToHalf(1.0f);
                     }
                     born.push_back({1, index.append(1, record)});
                   }
                   index.publish(1, born, {});
                   for (uint32_t i = 0; i < dim; ++i) query.push_back(i % 2 == 0 ? 1.0f : -1.0f);
                   const IndexSearch request = searchOf(query, 1, uint32_t(places.size()), 10, Plan::exact);
                   const SearchOutcome whole = search(index, engine.compute(), request);
                   CHECK(whole.candidateCount == documents * chunks && whole.results.size() == places.size());
                   for (size_t i = 0; i < places.size(); ++i) {
                     CHECK(whole.results[i].versionId == places[i] / chunks + 1 &&
                           whole.results[i].chunkIndex == places[i] % chunks);
                   }
                   IndexSearch grouped = request;
                   grouped.grouped = true;
                   grouped.topK = 3;
                   Search sliced(index, engine.compute(), grouped);
                   while (!sliced.run(Clock::now() + std::chrono::milliseconds(1))) continue;
                   checkSame(sliced.outcome(), search(index, engine.compute(), grouped));
                   std::map<uint64_t, uint32_t> found;
                   for (const SearchOutcome::Result& result : sliced.outcome().results) ++found[result.versionId];
                   CHECK((found == std::map<uint64_t, uint32_t>{{1, 10}, {131, 10}, {132, 10}}));
                 });

}  // namespace
}  // namespace maxsimd::test
