// Searches of segments in device memory, and how long their copies live.
#include "device/residents.h"
#include "runtime/engine.h"
#include "search/search.h"
#include "test/device/emulated_library.h"
#include "test/sample.h"

#include <atomic>
#include <fstream>
#include <functional>
#include <thread>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 48;
constexpr uint64_t exactTokenVectorsMax = 200;
constexpr ResidentTimes patient{std::chrono::hours(1), std::chrono::hours(1)};
/// Failed copies and devices are tried again soon.
constexpr ResidentTimes soonAgain{std::chrono::milliseconds(300), std::chrono::hours(1)};
/// No copy keeps its room.
constexpr ResidentTimes hasty{std::chrono::hours(0), std::chrono::hours(1)};

/// Runs `begin`, whose search the device holds, then `meanwhile`, and lets the device answer.
template <typename Begin, typename Meanwhile>
void whileHeld(const Begin& begin, const Meanwhile& meanwhile) {
  emulatedState.held = true;
  std::thread first(begin);
  emulatedState.searching.wait(0);
  meanwhile();
  emulatedState.held = false;
  emulatedState.held.notify_all();
  first.join();
}

struct Fixture {
  TemporaryDirectory directory;
  Clusters clusters;
  Residents residents;
  Engine engine;
  Index index;
  uint64_t versions = 0;
  uint64_t generation = 0;

  explicit Fixture(Random& random, uint64_t mostBytes = 0, ResidentTimes times = patient, uint32_t bits = 8)
      : clusters(random, dim, 60, bits),
        residents(emulatedLibrary(), 0, mostBytes, times),
        engine(2, "auto"),
        index(engine.kernel(), IndexOptions{{dim, bits}, exactTokenVectorsMax}, &residents) {}

  std::vector<Index::LifespanChange> records(uint64_t segment, uint32_t first, uint32_t last) const {
    std::vector<Index::LifespanChange> changes;
    for (uint32_t record = first; record < last; ++record) changes.push_back({segment, record});
    return changes;
  }

  /// Every third record repeats the one before it, so that scores tie. Version ids descend, so that chunks are not
  /// ordered by age.
  void add(Random& random, uint64_t segment, uint32_t count) {
    index.createSegment(segment, directory.file(std::to_string(segment) + ".seg"));
    RecordParts parts;
    versions += count;
    for (uint32_t r = 0; r < count; ++r) {
      if (r % 3 != 2) {
        std::vector<uint32_t> rows(between(random, 1, 2));
        for (auto& one : rows) one = between(random, 1, 20);
        parts = randomRecord(random, clusters, 0, rows, {term(uint8_t(r % 2))});
      }
      parts.versionId = versions - r;
      index.append(segment, parts);
    }
    index.publish(++generation, records(segment, 0, count), {});
  }

  void addSealed(Random& random, uint64_t segment, uint32_t count) {
    add(random, segment, count);
    index.seal(segment);
    index.buildCodes(segment, {});
  }

  IndexSearch ask(Random& random, uint32_t tokens, Plan plan = Plan::automatic) const {
    std::vector<float> query;
    for (uint32_t token = 0; token < tokens; ++token) {
      const auto vector = clusters.near(random, uint32_t(random() % clusters.centres.size()));
      query.insert(query.end(), vector.begin(), vector.end());
    }
    IndexSearch request = searchOf(query, tokens, 10, 40, plan);
    request.generation = generation;
    return request;
  }

  SearchOutcome run(IndexSearch request, Plan plan) {
    request.plan = plan;
    return search(index, engine.compute(), request);
  }

  /// Searches once, which requests the copies, and waits for them.
  void load(Random& random) {
    run(ask(random, 8), Plan::automatic);
    residents.settle();
  }
};

void checkSame(const SearchOutcome& found, const SearchOutcome& wanted) {
  CHECK(found.results.size() == wanted.results.size());
  for (size_t i = 0; i < found.results.size(); ++i) {
    CHECK(found.results[i].versionId == wanted.results[i].versionId);
    CHECK(found.results[i].chunkIndex == wanted.results[i].chunkIndex);
    CHECK(found.results[i].score == wanted.results[i].score);
  }
  CHECK(found.similarities == wanted.similarities);
}

void checkExact(Random& random, uint32_t bits) {
  Fixture fixture(random, 0, patient, bits);
  fixture.addSealed(random, 1, 60);
  fixture.addSealed(random, 2, 45);
  CHECK(fixture.run(fixture.ask(random, 8), Plan::automatic).plan != Plan::device);
  fixture.residents.settle();
  CHECK(fixture.residents.use().segments == 2);
  // An active segment beside them, and records that died since the copies were made.
  fixture.add(random, 3, 20);
  fixture.index.publish(++fixture.generation, {}, fixture.records(1, 10, 25));
  for (const uint32_t tokens : {1, 8, 33, 70}) {
    for (const bool filtered : {false, true}) {
      for (const bool grouped : {false, true}) {
        IndexSearch request = fixture.ask(random, tokens);
        if (filtered) request.terms = {term(1)};
        request.grouped = grouped;
        // All chunks of a document must be among the candidates.
        request.candidateK = 500;
        request.components = true;
        const SearchOutcome found = fixture.run(request, Plan::automatic), wanted = fixture.run(request, Plan::exact);
        CHECK(found.plan == Plan::device && found.preselected);
        checkSame(found, wanted);
        CHECK(found.candidateCount == wanted.candidateCount);
      }
    }
  }
  // A reader of an older generation sees records that died after it.
  IndexSearch before = fixture.ask(random, 8);
  before.generation = 2;
  checkSame(fixture.run(before, Plan::automatic), fixture.run(before, Plan::exact));
  // Nothing is admitted.
  IndexSearch nothing = fixture.ask(random, 8);
  nothing.terms = {term(99)};
  CHECK(fixture.run(nothing, Plan::automatic).results.empty());
}

const Case same("device", "the device gives exact results, and nothing waits for a copy",
                [](Random& random) { checkExact(random, 8); });

const Case fewBits("device", "the device gives exact results for rows of few bits", [](Random& random) {
  for (const uint32_t bits : {1, 2, 4}) checkExact(random, bits);
});

const Case ranks("device", "candidates are ranked by the device, and grouped searches end", [](Random& random) {
  Fixture fixture(random);
  fixture.addSealed(random, 1, 60);
  fixture.addSealed(random, 2, 60);
  fixture.load(random);
  const SearchOutcome found = fixture.run(fixture.ask(random, 8), Plan::automatic);
  CHECK(found.plan == Plan::device);
  for (uint32_t i = 0; i < found.results.size(); ++i) {
    CHECK(found.results[i].candidateRank == i && found.results[i].candidateScore == found.results[i].score);
  }
  IndexSearch grouped = fixture.ask(random, 8);
  grouped.grouped = true;
  grouped.topK = 500;
  grouped.candidateK = 200;
  const uint64_t before = fixture.residents.use().scored;
  CHECK(fixture.run(grouped, Plan::automatic).plan == Plan::device);
  CHECK(fixture.residents.use().scored <= before + 2 * 2);
});

const Case ties("device", "where too many chunks tie a search goes on without the device", [](Random& random) {
  Fixture fixture(random);
  const RecordParts parts = randomRecord(random, fixture.clusters, 0, std::vector<uint32_t>(50, 1));
  fixture.index.createSegment(1, fixture.directory.file("1.seg"));
  constexpr uint32_t records = 100;
  for (uint32_t r = 0; r < records; ++r) {
    // All rows of a record are equal.
    RecordParts same = parts;
    same.versionId = r + 1;
    for (size_t row = 1; row < 50; ++row)
      std::copy_n(same.vectors.begin(), dim, same.vectors.begin() + long(row * dim));
    std::fill(same.scales.begin(), same.scales.end(), same.scales[0]);
    fixture.index.append(1, same);
  }
  fixture.index.publish(++fixture.generation, fixture.records(1, 0, records), {});
  fixture.index.seal(1);
  fixture.load(random);
  const IndexSearch request = fixture.ask(random, 1);
  const SearchOutcome found = fixture.run(request, Plan::automatic);
  CHECK(fixture.residents.use().scored > 0 && found.plan == Plan::exact);
  checkSame(found, fixture.run(request, Plan::exact));
});

const Case room("device", "copies that nobody asks for make room, others keep it", [](Random& random) {
  emulatedState.matrices = 0;
  {
    // Room for one copy of 60 records of at most 40 rows, not for two.
    Fixture keeps(random, 60 * 40 * 130);
    keeps.addSealed(random, 1, 60);
    keeps.load(random);
    CHECK(keeps.residents.use().segments == 1 && keeps.residents.use().refusal.empty());
    keeps.addSealed(random, 2, 200);
    keeps.load(random);
    CHECK(keeps.residents.use().segments == 1);
    CHECK(keeps.residents.use().refusal.find("2.seg: no room") != std::string::npos);
    IndexSearch request = keeps.ask(random, 8);
    request.candidateK = 500;
    const SearchOutcome mixed = keeps.run(request, Plan::automatic);
    CHECK(mixed.plan == Plan::device);
    checkSame(mixed, keeps.run(request, Plan::exact));

    Fixture gives(random, 60 * 40 * 130, hasty);
    gives.addSealed(random, 1, 60);
    gives.load(random);
    gives.index.dropSegment(1);
    gives.addSealed(random, 2, 60);
    gives.load(random);
    CHECK(gives.residents.use().segments == 1 && gives.residents.use().bytes <= 60 * 40 * 130);
    CHECK(gives.run(gives.ask(random, 8), Plan::automatic).plan == Plan::device);
    CHECK(emulatedState.matrices == 2);
    gives.index.dropSegment(2);
    gives.residents.use();
    gives.residents.settle();
    CHECK(emulatedState.matrices == 1 && gives.residents.use().bytes == 0);
  }
  CHECK(emulatedState.matrices == 0);
});

const Case failing("device", "searches go on without a device that failed, for a while", [](Random& random) {
  Fixture fixture(random, 0, soonAgain);
  fixture.addSealed(random, 1, 60);
  fixture.load(random);
  const IndexSearch request = fixture.ask(random, 8);
  CHECK(fixture.run(request, Plan::automatic).plan == Plan::device);
  emulatedState.failing = true;
  const SearchOutcome without = fixture.run(request, Plan::automatic);
  emulatedState.failing = false;
  CHECK(without.plan != Plan::device && without.results.size() == 10);
  CHECK(fixture.residents.use().failure == "the emulated device fails");
  CHECK(fixture.run(request, Plan::automatic).plan != Plan::device);
  CHECK(fixture.residents.use().failure == "the emulated device fails");
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  CHECK(fixture.run(request, Plan::automatic).plan == Plan::device);
  CHECK(fixture.residents.use().failure.empty());
  CHECK_ERROR(Residents(emulatedLibrary(), 1, 0), ErrorCode::invalidArgument);
  CHECK_ERROR(loadDeviceLibrary("/nowhere.so"), ErrorCode::invalidArgument);
});

const Case together("concurrency", "waiting searches of the same chunks share a call", [](Random& random) {
  Fixture fixture(random);
  fixture.addSealed(random, 1, 24);
  fixture.addSealed(random, 2, 16);
  fixture.load(random);
  emulatedState.mostQueries = 0;
  std::vector<IndexSearch> requests;
  // The first request is alone on the device. Ten of those that wait have one block of tokens and share two calls. The
  // one of two blocks and the filtered one take a call each.
  for (const uint32_t tokens : {8, 8, 1, 32, 33, 7, 31, 8, 9, 10, 11, 12, 13})
    requests.push_back(fixture.ask(random, tokens));
  requests.back().terms = {term(1)};
  for (size_t i = 0; i < requests.size(); ++i) requests[i].topK = uint32_t(5 + i);
  const auto searchOnce = [&fixture](const IndexSearch& request) {
    const SearchOutcome found = fixture.run(request, Plan::automatic);
    CHECK(found.plan == Plan::device && found.results.size() == request.topK);
    checkSame(found, fixture.run(request, Plan::exact));
  };
  std::vector<std::thread> others;
  whileHeld([&] { searchOnce(requests[0]); },
            [&] {
              for (size_t i = 1; i < requests.size(); ++i) others.emplace_back(searchOnce, std::cref(requests[i]));
              while (fixture.residents.waiting() < others.size()) std::this_thread::yield();
            });
  for (std::thread& other : others) other.join();
  CHECK(emulatedState.mostQueries == deviceQueriesMost);
});

const Case silent("device", "a search that waits too long for the device goes on without it", [](Random& random) {
  Fixture fixture(random, 0, {std::chrono::hours(1), std::chrono::milliseconds(100)});
  fixture.addSealed(random, 1, 60);
  fixture.load(random);
  const IndexSearch request = fixture.ask(random, 8);
  whileHeld([&] { CHECK(fixture.run(request, Plan::automatic).plan == Plan::device); },
            [&] {
              const SearchOutcome found = fixture.run(request, Plan::automatic);
              CHECK(found.plan != Plan::device && found.results.size() == 10);
              CHECK(fixture.residents.use().failure == "it does not answer");
            });
  // The one that was answered does not clear the failure of the others.
  CHECK(fixture.residents.use().failure == "it does not answer");
});

const Case wrong("device", "a device whose scores differ from the CPU's is not used", [](Random& random) {
  Fixture fixture(random, 0, soonAgain);
  fixture.addSealed(random, 1, 60);
  fixture.load(random);
  IndexSearch request = fixture.ask(random, 8);
  request.candidateK = 500;
  emulatedState.wrong = true;
  const SearchOutcome found = fixture.run(request, Plan::automatic);
  emulatedState.wrong = false;
  CHECK(found.plan != Plan::device);
  checkSame(found, fixture.run(request, Plan::exact));
  CHECK(fixture.residents.use().failure == "its scores are not the CPU's" && fixture.residents.use().segments == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  fixture.load(random);
  CHECK(fixture.run(request, Plan::automatic).plan == Plan::device);
});

const Case beside("concurrency", "copies come and go beside searches, and segments beside both", [](Random& random) {
  // Room for one of the two.
  Fixture fixture(random, 60 * 20 * 130, hasty);
  fixture.addSealed(random, 1, 60);
  fixture.addSealed(random, 2, 60);
  const IndexSearch request = fixture.ask(random, 4);
  const SearchOutcome wanted = fixture.run(request, Plan::exact);
  std::atomic<bool> ended{false};
  std::atomic<uint32_t> onDevice{0};
  std::vector<std::thread> searchers;
  for (int searcher = 0; searcher < 3; ++searcher) {
    searchers.emplace_back([&] {
      IndexSearch own = request;
      own.candidateK = 500;
      while (!ended) {
        const SearchOutcome found = fixture.run(own, Plan::automatic);
        checkSame(found, wanted);
        if (found.plan == Plan::device) onDevice += 1;
      }
    });
  }
  for (int round = 0; round < rounds(20); ++round) {
    fixture.index.createSegment(10 + uint64_t(round), fixture.directory.file(std::to_string(10 + round) + ".seg"));
    fixture.index.dropSegment(10 + uint64_t(round));
    fixture.residents.settle();
    CHECK(fixture.residents.use().bytes <= fixture.residents.use().mostBytes);
  }
  while (onDevice < 10) std::this_thread::yield();
  ended = true;
  for (std::thread& searcher : searchers) searcher.join();
});

const Case damaged("device", "a segment with a damaged record gets no copy", [](Random& random) {
  Fixture fixture(random);
  constexpr uint32_t records = 60;
  fixture.add(random, 1, records);
  fixture.index.seal(1);
  fixture.index.dropSegment(1);
  const std::string path = fixture.directory.file("1.seg");
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    file.seekp(file.tellg() / 2);
    file.write(std::string(600, 'x').data(), 600);
  }
  // Opened again, because appended records count as checked.
  fixture.index.openSegment(1, path, records, true);
  std::vector<Index::LifespanLoad> lifespans;
  for (uint32_t r = 0; r < records; ++r) lifespans.push_back({{1, r}, records - r, 1, generationNever});
  fixture.index.loadLifespans(lifespans);
  try {
    fixture.load(random);
  } catch (const UnreadRecord&) {
    fixture.residents.settle();
  }
  CHECK(fixture.residents.use().segments == 0);
  CHECK(fixture.residents.use().refusal.find("1.seg") != std::string::npos);
});

}  // namespace
}  // namespace maxsimd::test
