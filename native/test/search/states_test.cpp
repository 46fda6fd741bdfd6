// Searches and codes of segments in rare states: during a merge, with damaged records that nobody sees, after a commit
// that failed.
#include "candidates/candidates.h"
#include "runtime/engine.h"
#include "search/search.h"
#include "test/sample.h"

#include <fstream>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 16;
constexpr uint32_t topK = 10;

IndexSearch ask(Random& random, const Clusters& clusters, Plan plan) {
  IndexSearch request{};
  for (uint32_t token = 0; token < 8; ++token) {
    const auto vector = clusters.near(random, uint32_t(random() % clusters.centres.size()));
    request.query.insert(request.query.end(), vector.begin(), vector.end());
    request.offsets.push_back(0.0f);
  }
  request.topK = topK;
  request.candidateK = 60;
  request.generation = 1;
  request.plan = plan;
  return request;
}

/// The records that a merge moves, and the lifespans that they get in the target.
struct Moved {
  std::vector<uint32_t> records;
  std::vector<Index::LifespanLoad> lifespans;
};

/// Fills segment 1 with records born at generation 1, to be moved to segment 2.
Moved fillSource(Index& index, const TemporaryDirectory& directory, Random& random, const Clusters& clusters,
                 uint32_t records) {
  index.createSegment(1, directory.file("1.seg"));
  Moved moved;
  std::vector<Index::LifespanChange> born;
  for (uint32_t r = 0; r < records; ++r) {
    index.append(1, randomRecord(random, clusters, r + 1, {30}));
    born.push_back({1, r});
    moved.records.push_back(r);
    moved.lifespans.push_back({{2, r}, r + 1, 1, generationNever});
  }
  index.publish(1, born, {});
  index.createSegment(2, directory.file("2.seg"));
  return moved;
}

void copyToTarget(Index& index, const Moved& moved) {
  index.copyRecords(1, moved.records, 2, {});
  index.sync(2);
  index.seal(2);
}

const Case merged("states", "a search that began during a merge sees what it moved", [](Random& random) {
  for (const bool othersFirst : {false, true}) {
    constexpr uint32_t records = 2000;
    const TemporaryDirectory directory;
    const Clusters clusters(random, dim, 30);
    Engine engine(1, "auto");
    Index index(engine.kernel(), IndexOptions{dim, 1000});
    const Moved moved = fillSource(index, directory, random, clusters, records);
    const auto begun = index.snapshot();
    copyToTarget(index, moved);
    index.loadLifespans(moved.lifespans);
    index.dropSegment(1);
    const IndexSearch request = ask(random, clusters, Plan::exact);
    if (othersFirst) CHECK(search(index, engine.compute(), request).results.size() == topK);

    const auto selections = selectLive(begun, 1, {}, {});
    CHECK(selections.front().chunks->count == records);
    CHECK(selections.back().chunks->count == 0);
    CHECK(search(index, engine.compute(), request).results.size() == topK);
  }
});

const Case askedAgain("states", "a search of an older generation changes nothing for later ones", [](Random& random) {
  constexpr uint32_t records = 20;
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 30);
  Engine engine(1, "auto");
  Index index(engine.kernel(), IndexOptions{dim, 1000});
  Moved moved = fillSource(index, directory, random, clusters, records);
  copyToTarget(index, moved);
  index.publish(2, {}, std::vector<Index::LifespanChange>{{1, 0}});
  moved.lifespans[0].died = 2;
  index.loadLifespans(moved.lifespans);
  index.dropSegment(1);
  const auto live = [&](uint64_t generation) {
    return selectLive(index.snapshot(), generation, {}, {}).front().chunks->count;
  };
  // A search began before the merge ended and is repeated after it.
  CHECK(live(1) == records);
  CHECK(live(2) == records - 1);
  index.publish(3, {}, std::vector<Index::LifespanChange>{{2, 1}});
  CHECK(live(3) == records - 2);
  CHECK(live(2) == records - 1);
  CHECK(live(1) == records);
});

const Case damagedDead("states", "codes are built beside damaged records that nobody sees", [](Random& random) {
  constexpr uint32_t records = 100;
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 30);
  Engine engine(1, "auto");
  {
    Index index(engine.kernel(), IndexOptions{dim, 1000});
    index.createSegment(1, directory.file("1.seg"));
    for (uint32_t r = 0; r < records; ++r) index.append(1, randomRecord(random, clusters, r + 1, {30}));
    index.sync(1);
    index.seal(1);
  }
  {
    // A byte among the token vectors of the first record.
    std::fstream file(directory.file("1.seg"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 * 64 + 10);
    file.put(char(99));
  }
  for (const bool isDead : {true, false}) {
    Index index(engine.kernel(), IndexOptions{dim, 1000});
    index.openSegment(1, directory.file("1.seg"), records, true);
    std::vector<Index::LifespanLoad> lifespans;
    for (uint32_t r = 0; r < records; ++r)
      lifespans.push_back({{1, r}, r + 1, 1, isDead && r == 0 ? 1 : generationNever});
    index.loadLifespans(lifespans);
    if (isDead) {
      CHECK(index.buildCodes(1, {}).chunks == records);
      const auto outcome = search(index, engine.compute(), ask(random, clusters, Plan::codes));
      CHECK(outcome.results.size() == topK);
      for (const auto& result : outcome.results) CHECK(result.versionId != 1);
    } else {
      CHECK_ERROR(index.buildCodes(1, {}), ErrorCode::corrupt);
    }
  }
});

const Case neverBorn("states", "lists end where the records that were committed end", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 30);
  Engine engine(1, "auto");
  Index index(engine.kernel(), IndexOptions{dim, 1000});
  index.createSegment(1, directory.file("1.seg"));
  index.append(1, randomRecord(random, clusters, 1, std::vector<uint32_t>(65000, 1)));
  index.publish(1, std::vector<Index::LifespanChange>{{1, 0}}, {});
  CHECK(search(index, engine.compute(), ask(random, clusters, Plan::exact)).results.size() == topK);
  // The commit of this record failed. With it the segment has chunks in a second block of lists.
  index.append(1, randomRecord(random, clusters, 2, std::vector<uint32_t>(1000, 1)));
  index.seal(1);
  index.buildCodes(1, {});
  for (uint32_t round = 0; round < 20; ++round) {
    const auto outcome = search(index, engine.compute(), ask(random, clusters, Plan::lists));
    CHECK(outcome.results.size() == topK);
    for (const auto& result : outcome.results) CHECK(result.versionId == 1);
  }
});

}  // namespace
}  // namespace maxsimd::test
