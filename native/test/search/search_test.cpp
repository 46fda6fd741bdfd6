// Compares plans with brute force in float64; lifespans, filters, damage, and searches beside writers.
#include "runtime/engine.h"
#include "index/group_sync.h"
#include "search/search.h"
#include "kernels/dispatch.h"
#include "test/sample.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>
#include <tuple>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 48;
constexpr uint32_t tokens = 20;

struct Document {
  RecordParts parts;
  uint64_t segment;
  uint32_t record;
};

struct Fixture {
  TemporaryDirectory directory;
  Clusters clusters;
  Engine engine;
  std::shared_ptr<Index> index;
  std::vector<Document> documents;

  Fixture(Random& random, uint32_t threads, uint32_t bits = 8)
      : clusters(random, dim, 150, bits),
        engine(threads, "auto"),
        index(std::make_shared<Index>(engine.kernel(), IndexOptions{{dim, bits}, 1000})) {}

  void add(Random& random, uint64_t segment, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<uint32_t> chunkRows(between(random, 1, 3));
      for (auto& rows : chunkRows) rows = between(random, 1, 40);
      const auto version = uint64_t(documents.size());
      auto parts = randomRecord(random, clusters, version, chunkRows,
                                {term(uint8_t(version % 4)), term(uint8_t(100 + version % 10))});
      const uint32_t record = index->append(segment, parts);
      documents.push_back({std::move(parts), segment, record});
    }
  }

  void publish(uint64_t generation, const std::vector<uint64_t>& born, const std::vector<uint64_t>& died = {}) {
    std::vector<Index::LifespanChange> births, deaths;
    for (const uint64_t v : born) births.push_back({documents[v].segment, documents[v].record});
    for (const uint64_t v : died) deaths.push_back({documents[v].segment, documents[v].record});
    index->publish(generation, births, deaths);
  }

  IndexSearch request(Random& random, uint64_t generation, Plan plan) const {
    IndexSearch request{};
    const auto topic = uint32_t(random() % clusters.centres.size());
    for (uint32_t i = 0; i < tokens; ++i) {
      const auto vector = clusters.near(random, (topic + uint32_t(random() % 12)) % uint32_t(clusters.centres.size()));
      request.query.insert(request.query.end(), vector.begin(), vector.end());
      request.offsets.push_back(0.01f * float(i));
    }
    request.topK = 10;
    request.candidateK = 60;
    request.generation = generation;
    request.plan = plan;
    return request;
  }
};

using Key = std::pair<uint64_t, uint32_t>;

/// The float64 MaxSim of the unquantised query and stored documents, best first.
std::vector<std::pair<double, Key>> bruteForce(const Fixture& fixture, const IndexSearch& request,
                                               const std::set<uint64_t>& visible) {
  std::vector<std::pair<double, Key>> ranking;
  for (const uint64_t version : visible) {
    const RecordParts& parts = fixture.documents[version].parts;
    uint32_t row = 0;
    for (uint32_t c = 0; c < parts.chunkRows.size(); ++c) {
      double score = 0;
      for (uint32_t i = 0; i < tokens; ++i) {
        double best = -INFINITY;
        for (uint32_t j = row; j < row + parts.chunkRows[c]; ++j) {
          double dot = 0;
          const uint32_t bits = fixture.clusters.bits;
          const int8_t* stored = parts.vectors.data() + j * RowShape(dim, bits).bytes();
          for (uint32_t d = 0; d < dim; ++d) dot += double(request.query[i * dim + d]) * componentOf(stored, bits, d);
          best = std::max(best, dot * double(halfToFloat(parts.scales[j])));
        }
        score += best + double(request.offsets[i]);
      }
      ranking.emplace_back(score, Key{version, c});
      row += parts.chunkRows[c];
    }
  }
  std::sort(ranking.begin(), ranking.end(), std::greater<>());
  return ranking;
}

std::vector<uint64_t> range(uint64_t first, uint64_t last) {
  std::vector<uint64_t> numbers;
  for (uint64_t n = first; n < last; ++n) numbers.push_back(n);
  return numbers;
}

const Case fewBits("search", "rows of few bits rank as float64 does, by their codes too, and survive a copy",
                   [](Random& random) {
                     for (const uint32_t bits : {1, 2, 4}) {
                       Fixture fixture(random, 2, bits);
                       fixture.index->createSegment(1, fixture.directory.file("1.seg"));
                       fixture.add(random, 1, 300);
                       fixture.publish(5, range(0, 300));
                       fixture.index->seal(1);
                       fixture.index->createSegment(2, fixture.directory.file("2.seg"));
                       const std::vector<uint32_t> all = [] {
                         std::vector<uint32_t> records(300);
                         std::iota(records.begin(), records.end(), 0u);
                         return records;
                       }();
                       fixture.index->copyRecords(1, all, 2, {});
                       fixture.index->copyLifespans(1, all, 2, 0);
                       fixture.index->seal(2);
                       fixture.index->dropSegment(1);
                       fixture.index->buildCodes(2, {});
                       std::set<uint64_t> visible;
                       for (const uint64_t version : range(0, 300)) visible.insert(version);
                       size_t found = 0, asked = 0;
                       for (int round = 0; round < 20; ++round) {
                         const IndexSearch request = fixture.request(random, 5, Plan::exact);
                         const auto expected = bruteForce(fixture, request, visible);
                         const SearchOutcome outcome = search(*fixture.index, fixture.engine.compute(), request);
                         std::set<Key> best;
                         for (size_t i = 0; i < 10; ++i) {
                           CHECK(std::abs(outcome.results[i].score - expected[i].first) < 0.02 * tokens);
                           best.insert(expected[i].second);
                         }
                         for (const Plan plan : {Plan::codes, Plan::graph}) {
                           IndexSearch coded = request;
                           coded.plan = plan;
                           for (const auto& result : search(*fixture.index, fixture.engine.compute(), coded).results) {
                             found += best.contains({result.versionId, result.chunkIndex});
                           }
                           asked += 10;
                         }
                       }
                       CHECK(found * 10 >= asked * 8);
                     }
                   });

const Case exact("search", "the exact plan ranks as float64 does and sees exactly the snapshot", [](Random& random) {
  Fixture fixture(random, 3);
  fixture.index->createSegment(1, fixture.directory.file("1.seg"));
  fixture.add(random, 1, 60);
  fixture.publish(5, range(0, 60));
  fixture.index->seal(1);
  fixture.index->createSegment(2, fixture.directory.file("2.seg"));
  fixture.add(random, 2, 60);
  fixture.publish(6, range(60, 100), range(0, 20));
  for (const uint64_t generation : {4, 5, 6, 9}) {
    for (const bool filtered : {false, true}) {
      std::set<uint64_t> visible;
      for (uint64_t v = 0; v < fixture.documents.size(); ++v) {
        const bool alive = generation >= 6 ? v >= 20 && v < 100 : generation == 5 && v < 60;
        if (alive && (!filtered || (v % 4 == 2 && v % 10 == 2))) visible.insert(v);
      }
      IndexSearch request = fixture.request(random, generation, Plan::exact);
      if (filtered) request.terms = {term(2), term(102)};
      request.components = true;
      const SearchOutcome outcome = search(*fixture.index, fixture.engine.compute(), request);
      const auto expected = bruteForce(fixture, request, visible);
      CHECK(outcome.candidateCount == expected.size());
      CHECK(outcome.results.size() == std::min<size_t>(10, expected.size()));
      for (size_t i = 0; i < outcome.results.size(); ++i) {
        const auto& result = outcome.results[i];
        CHECK(visible.contains(result.versionId));
        CHECK(std::abs(result.score - expected[i].first) < 0.02 * tokens);
        double sum = 0;
        for (uint32_t t = 0; t < tokens; ++t) sum += outcome.similarities[i * tokens + t];
        CHECK(std::abs(sum - result.score) < 1e-4);
      }
    }
  }
  CHECK_ERROR(fixture.publish(6, {}), ErrorCode::invalidArgument);
});

const Case plans("search", "codes and lists keep the best of what exact search finds", [](Random& random) {
  Fixture fixture(random, 2);
  fixture.index->createSegment(1, fixture.directory.file("1.seg"));
  fixture.add(random, 1, 2500);
  fixture.publish(1, range(0, 2500));
  fixture.index->seal(1);
  fixture.index->buildCodes(1, {});
  fixture.index->createSegment(2, fixture.directory.file("2.seg"));
  fixture.add(random, 2, 100);
  fixture.publish(2, range(2500, 2600), range(0, 30));
  uint32_t active = 0;
  for (uint64_t v = 2500; v < 2600; ++v) active += uint32_t(fixture.documents[v].parts.chunkRows.size());
  for (const Plan plan : {Plan::codes, Plan::lists, Plan::graph}) {
    int found = 0, wanted = 0;
    for (int round = 0; round < 20; ++round) {
      IndexSearch request = fixture.request(random, 2, Plan::exact);
      const SearchOutcome truth = search(*fixture.index, fixture.engine.compute(), request);
      request.plan = plan;
      const SearchOutcome outcome = search(*fixture.index, fixture.engine.compute(), request);
      CHECK(outcome.plan == plan && outcome.candidateCount == 60 + active);
      std::set<Key> keys;
      for (const auto& result : outcome.results) keys.insert({result.versionId, result.chunkIndex});
      for (const auto& result : truth.results) {
        ++wanted;
        found += int(keys.contains({result.versionId, result.chunkIndex}));
      }
    }
    std::printf("  recall@10 of %s at candidate_k 60: %.3f\n", planName(plan), double(found) / wanted);
    CHECK(found >= wanted * 8 / 10);
  }
});

const Case threads("search", "results do not depend on the number of threads", [](Random& random) {
  const Random start = random;
  std::vector<std::vector<std::pair<Key, float>>> runs;
  for (const uint32_t count : {1, 2, 5}) {
    Random same = start;
    Fixture fixture(same, count);
    fixture.index->createSegment(1, fixture.directory.file("1.seg"));
    fixture.add(same, 1, 3000);
    fixture.publish(1, range(0, 3000));
    fixture.index->seal(1);
    fixture.index->buildCodes(1, {});
    auto& run = runs.emplace_back();
    for (const Plan plan : {Plan::exact, Plan::codes, Plan::lists, Plan::graph}) {
      for (int round = 0; round < 5; ++round) {
        const IndexSearch request = fixture.request(same, 1, plan);
        for (const auto& result : search(*fixture.index, fixture.engine.compute(), request).results) {
          run.push_back({{result.versionId, result.chunkIndex}, result.score});
        }
      }
    }
  }
  CHECK(runs[0] == runs[1] && runs[0] == runs[2]);
});

/// A record of one version: chunks of one token vector each, or one chunk with all of them.
RecordParts recordOf(uint64_t version, const std::vector<std::vector<float>>& vectors, bool oneChunk) {
  RecordParts parts;
  parts.versionId = version;
  parts.chunkRows.assign(oneChunk ? 1 : vectors.size(), uint32_t(oneChunk ? vectors.size() : 1));
  parts.vectors.resize(vectors.size() * dim + readPaddingBytes);
  for (size_t row = 0; row < vectors.size(); ++row) {
    float scale;
    quantise(vectors[row], parts.vectors.data() + row * dim, &scale);
    parts.scales.push_back(floatToHalf(scale));
  }
  const Term own = term(uint8_t(version % 4));
  parts.terms.assign(own.begin(), own.end());
  return parts;
}

const Case ties("search", "of equal scores the oldest versions are found, wherever records lie", [](Random& random) {
  // More documents of two equal chunks than any shortlist holds. A few are better, and tie, too.
  constexpr uint64_t alike = 2800, better = 3, others = 400;
  const Clusters clusters(random, dim, 150);
  const auto common = clusters.near(random, 1), rare = clusters.near(random, 2);
  const auto scoreOf = [&](const std::vector<float>& vector) {
    return std::inner_product(vector.begin(), vector.end(), common.begin(), 0.0) +
           std::inner_product(vector.begin(), vector.end(), rare.begin(), 0.0);
  };
  // A vector between the two may rank before chunks that have only the common one.
  const auto worse = [&](uint32_t cluster) {
    for (;;) {
      const auto vector = clusters.near(random, cluster);
      if (scoreOf(vector) < scoreOf(common) - 0.1) return vector;
    }
  };
  std::vector<uint64_t> versions = range(0, alike + better + others);
  std::shuffle(versions.begin(), versions.end(), random);
  std::vector<RecordParts> records;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (i < alike) records.push_back(recordOf(versions[i], {common, common}, false));
    else if (i < alike + better) records.push_back(recordOf(versions[i], {common, rare}, true));
    else
      // Many are near the rare vector. Codes take a vector that no centroid is near for the common one.
      records.push_back(recordOf(versions[i], {worse(i % 8 == 0 ? 2 : uint32_t(random() % 150))}, true));
  }
  std::sort(versions.begin(), versions.begin() + alike);
  std::sort(versions.begin() + alike, versions.begin() + alike + better);

  IndexSearch request{};
  for (uint32_t i = 0; i < tokens; ++i) {
    const auto& vector = i % 2 == 0 ? common : rare;
    request.query.insert(request.query.end(), vector.begin(), vector.end());
    request.offsets.push_back(0);
  }
  request.topK = 10;
  request.candidateK = 60;
  request.generation = 1;
  request.components = true;

  for (int arrangement = 0; arrangement < 2; ++arrangement) {
    std::shuffle(records.begin(), records.end(), random);
    Fixture fixture(random, 3);
    std::vector<Index::LifespanChange> born;
    for (uint64_t segment = 1; segment <= 3; ++segment)
      fixture.index->createSegment(segment, fixture.directory.file(std::to_string(segment) + ".seg"));
    for (size_t i = 0; i < records.size(); ++i) {
      const uint64_t segment = i % 10 == 0 ? 3 : 1 + i % 2;
      born.push_back({segment, fixture.index->append(segment, records[i])});
    }
    fixture.index->publish(1, born, {});
    for (const uint64_t segment : {1, 2}) fixture.index->seal(segment);
    for (const uint64_t segment : {1, 2}) fixture.index->buildCodes(segment, {});
    Pool alone(1);
    for (Pool* pool : {&alone, &fixture.engine.compute()}) {
      for (const bool filtered : {false, true}) {
        std::vector<Key> expected;
        const auto expect = [&](uint64_t version, uint32_t chunks) {
          for (uint32_t c = 0; c < chunks && expected.size() < request.topK; ++c) {
            if (!filtered || version % 4 == 2) expected.push_back({version, c});
          }
        };
        for (size_t i = alike; i < alike + better; ++i) expect(versions[i], 1);
        for (size_t i = 0; i < alike; ++i) expect(versions[i], 2);
        request.terms.reset();
        if (filtered) request.terms = {term(2)};
        for (const Plan plan : {Plan::exact, Plan::codes, Plan::lists, Plan::graph}) {
          request.plan = plan;
          const SearchOutcome outcome = search(*fixture.index, *pool, request);
          CHECK(outcome.plan == plan);
          std::vector<Key> found;
          for (const auto& result : outcome.results) found.push_back({result.versionId, result.chunkIndex});
          CHECK(found == expected);
          CHECK(outcome.similarities.size() == size_t(request.topK) * tokens);
        }
      }
    }
  }
});

const Case damage("search", "damage in a sealed record rejects the search that touches it", [](Random& random) {
  Fixture fixture(random, 2);
  const std::string path = fixture.directory.file("1.seg");
  fixture.index->createSegment(1, path);
  fixture.add(random, 1, 10);
  fixture.index->seal(1);
  fixture.index->dropSegment(1);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200 + 64);
    file.put(char(0x55));
    file.seekg(0, std::ios::end);
  }
  fixture.index->openSegment(1, path, 10, true);
  std::vector<Index::LifespanLoad> lifespans;
  for (uint32_t r = 0; r < 10; ++r) lifespans.push_back({{1, r}, r, 1, generationNever});
  fixture.index->loadLifespans(lifespans);
  for (uint32_t r = 0; r < 10; ++r) CHECK(fixture.index->verifyRecord(1, r).damage.empty() == (r > 0));
  lifespans[3].versionId = 99;
  CHECK_ERROR(fixture.index->loadLifespans(lifespans), ErrorCode::corrupt);
  CHECK_ERROR(fixture.index->copyRecords(1, std::vector<uint32_t>{0}, 1, {}), ErrorCode::invalidArgument);
  fixture.index->createSegment(2, fixture.directory.file("2.seg"));
  CHECK_ERROR(fixture.index->copyRecords(1, std::vector<uint32_t>{1, 0}, 2, {}), ErrorCode::corrupt);
});

const Case deadline("search", "a passed deadline ends a search", [](Random& random) {
  Fixture fixture(random, 2);
  fixture.index->createSegment(1, fixture.directory.file("1.seg"));
  fixture.add(random, 1, 5);
  fixture.publish(1, range(0, 5));
  IndexSearch request = fixture.request(random, 1, Plan::exact);
  request.deadline.at = Clock::now();
  CHECK_ERROR(search(*fixture.index, fixture.engine.compute(), request), ErrorCode::deadlineExceeded);
});

const Case dropped("concurrency", "opening a segment answers though it is dropped meanwhile", [](Random& random) {
  Fixture fixture(random, 1);
  const std::string path = fixture.directory.file("1.seg");
  fixture.index->createSegment(1, path);
  // Opening an active segment reads its records, which takes long enough for the other thread.
  constexpr uint32_t records = 2000;
  const RecordParts parts = randomRecord(random, fixture.clusters, 1, {200});
  for (uint32_t r = 0; r < records; ++r) fixture.index->append(1, parts);
  fixture.index->dropSegment(1);
  uint32_t met = 0;
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> answered{false};
    std::thread opener([&] {
      CHECK(fixture.index->openSegment(1, path, records, false).counts.records == records);
      answered = true;
    });
    while (!answered) {
      fixture.index->dropSegment(1);
      std::this_thread::yield();
    }
    opener.join();
    met += fixture.index->segments().empty();
    fixture.index->dropSegment(1);
  }
  CHECK(met > 0);
});

const Case concurrent("concurrency", "searches beside writes see whole snapshots", [](Random& random) {
  Fixture fixture(random, 3);
  fixture.index->createSegment(1, fixture.directory.file("1.seg"));
  fixture.add(random, 1, 20);
  fixture.publish(1, range(0, 20));
  std::atomic<uint64_t> published{1};
  std::atomic<bool> done{false};
  const uint64_t seed = random();
  const auto groupSync = std::make_shared<GroupSync>(fixture.index);
  // Generation g holds the versions [20 (g - 1), 20 g), because each publication replaces all of the one before.
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      Random own(seed + reader);
      while (!done) {
        const uint64_t generation = published;
        IndexSearch request = fixture.request(own, generation, own() % 2 ? Plan::codes : Plan::exact);
        if (own() % 3 == 0) request.terms = {term(2)};
        const SearchOutcome outcome = search(*fixture.index, fixture.engine.compute(), request);
        CHECK(!outcome.results.empty());
        for (const auto& result : outcome.results) {
          CHECK(result.versionId >= 20 * (generation - 1) && result.versionId < 20 * generation);
        }
      }
    });
  }
  std::vector<std::thread> builders;
  uint64_t segment = 1;
  for (uint64_t generation = 2; generation <= 25; ++generation) {
    if (generation % 8 == 0) {
      fixture.index->seal(segment);
      builders.emplace_back([&, segment] {
        fixture.index->buildCodes(segment, {});
        fixture.index->buildPostings(segment, {});
      });
      ++segment;
      fixture.index->createSegment(segment, fixture.directory.file(std::to_string(segment) + ".seg"));
    }
    fixture.add(random, segment, 20);
    std::atomic<int> synced{0};
    for (int caller = 0; caller < 3; ++caller) {
      groupSync->request(fixture.engine.files(), segment, [&](std::exception_ptr failure) {
        CHECK(failure == nullptr);
        ++synced;
        synced.notify_all();
      });
    }
    for (int count = synced; count < 3; count = synced) synced.wait(count);
    fixture.publish(generation, range(20 * (generation - 1), 20 * generation),
                    range(20 * (generation - 2), 20 * (generation - 1)));
    published = generation;
  }
  done = true;
  for (auto* threads : {&readers, &builders}) {
    for (std::thread& thread : *threads) thread.join();
  }
});

}  // namespace
}  // namespace maxsimd::test
