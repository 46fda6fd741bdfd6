// Files that become unreadable while they are mapped. They are cut short, which the operating system reports like a
// disk error, or changed.
#include "runtime/engine.h"
#include "index/index.h"
#include "search/search.h"
#include "files/error.h"
#include "files/mapping.h"
#include "test/sample.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 16;
constexpr uint32_t records = 300;
constexpr uint64_t exactMax = 1000;

/// A file with its own mapping.
struct MappedFile {
  std::string path;
  std::unique_ptr<Mapping> mapping;

  MappedFile(std::string at, uint64_t bytes, char content) : path(std::move(at)) {
    std::ofstream(path, std::ios::binary) << std::string(bytes, content);
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    mapping = std::make_unique<Mapping>(descriptor, bytes);
    close(descriptor);
  }
  uint8_t read(uint64_t offset) const { return *const_cast<const volatile uint8_t*>(mapping->base() + offset); }
};

const Case cut("unread", "a file cut short under its mapping reads as zeros and is marked", [](Random& random) {
  const TemporaryDirectory directory;
  constexpr uint64_t bytes = 64 << 10;
  std::vector<MappedFile> files;
  // More mappings than one block of slots holds.
  for (int f = 0; f < 600; ++f) files.emplace_back(directory.file(std::to_string(f)), bytes, 'a');
  const size_t lost = random() % files.size();
  CHECK(files[lost].read(0) == 'a' && files[lost].read(bytes - 1) == 'a');
  std::filesystem::resize_file(files[lost].path, bytes / 2);
  CHECK(!files[lost].mapping->failure());
  CHECK(files[lost].read(bytes / 2 + 5) == 0);
  CHECK(files[lost].mapping->failure() == bytes / 2 + 5);
  CHECK(files[lost].read(0) == 0 && files[lost].read(bytes - 1) == 0);
  CHECK(files[lost].mapping->failure() == bytes / 2 + 5);
  for (size_t f = 0; f < files.size(); ++f)
    CHECK(f == lost || (files[f].read(bytes - 1) == 'a' && !files[f].mapping->failure()));
  // Another mapping reuses its slot.
  files.erase(files.begin() + long(lost));
  files.emplace_back(directory.file("another"), bytes, 'b');
  CHECK(files.back().read(5) == 'b' && !files.back().mapping->failure());
});

const Case elsewhere("unread", "a fault outside our mappings ends the process as before", [](Random&) {
  const TemporaryDirectory directory;
  const MappedFile ours(directory.file("ours"), 4096, 'a');
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const int descriptor = open(ours.path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto* theirs =
        static_cast<const volatile uint8_t*>(mmap(nullptr, 8192, PROT_READ, MAP_SHARED, descriptor, 0));
    close(STDERR_FILENO);
    _exit(theirs[4096] == 0 ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
});

const Case threads("concurrency", "threads read mappings that fail while others come and go", [](Random&) {
  const TemporaryDirectory directory;
  constexpr uint64_t bytes = 64 << 10;
  const MappedFile whole(directory.file("whole"), bytes, 'a');
  std::atomic<bool> done{false};
  std::thread others([&] {
    for (int f = 0; !done; ++f) MappedFile(directory.file("other"), bytes, 'b');
  });
  for (int round = 0; round < rounds(50); ++round) {
    const MappedFile lost(directory.file("lost"), bytes, 'c');
    std::filesystem::resize_file(lost.path, 0);
    const auto readAll = [&] {
      for (uint64_t at = 0; at < bytes; at += 512) CHECK(lost.read(at) == 0 && whole.read(at) == 'a');
      CHECK(lost.mapping->failure() && !whole.mapping->failure());
    };
    std::thread first(readAll), second(readAll);
    first.join();
    second.join();
  }
  done = true;
  others.join();
});

/// An index of one sealed segment. Record r carries term r % 3, and its version id is r + 1.
struct Stage {
  TemporaryDirectory directory;
  Clusters clusters;
  Engine engine{2, "auto"};
  Index index{engine.kernel(), IndexOptions{dim, exactMax}};
  IndexSearch request{};

  Stage(Random& random, bool coded) : clusters(random, dim, 30) {
    index.createSegment(1, path());
    std::vector<Index::LifespanChange> born;
    for (uint32_t r = 0; r < records; ++r) {
      index.append(1, randomRecord(random, clusters, r + 1, {30}, {term(uint8_t(r % 3))}));
      born.push_back({1, r});
    }
    index.sync(1);
    index.seal(1);
    index.publish(1, born, {});
    if (coded) index.buildCodes(1, {});
    for (uint32_t token = 0; token < 8; ++token) {
      const auto vector = clusters.near(random, uint32_t(random() % clusters.centres.size()));
      request.query.insert(request.query.end(), vector.begin(), vector.end());
      request.offsets.push_back(0.0f);
    }
    request.topK = 10;
    request.candidateK = 60;
    request.generation = 1;
    request.plan = Plan::exact;
  }

  /// Opens the segment again: no record has been checked yet.
  void reopen() {
    index.dropSegment(1);
    index.openSegment(1, path(), records, true);
    std::vector<Index::LifespanLoad> lifespans;
    for (uint32_t r = 0; r < records; ++r) lifespans.push_back({{1, r}, r + 1, 1, generationNever});
    index.loadLifespans(lifespans);
  }
  std::string path(const std::string& ending = "") const { return directory.file("1.seg" + ending); }
  SearchOutcome search() { return maxsimd::search(index, engine.compute(), request); }
};

std::vector<char> bytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes into the existing file.
void putBytes(const std::string& path, const std::vector<char>& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.write(bytes.data(), long(bytes.size()));
}

bool same(const SearchOutcome& a, const SearchOutcome& b) {
  if (a.results.size() != b.results.size()) return false;
  for (size_t i = 0; i < a.results.size(); ++i) {
    if (a.results[i].versionId != b.results[i].versionId || a.results[i].score != b.results[i].score) return false;
  }
  return !a.results.empty();
}

/// Returns the record that the error names.
template <typename Work>
uint32_t unreadIn(const Work& work, ErrorCode code) {
  try {
    work();
  } catch (const UnreadRecord& error) {
    CHECK(error.code() == code && error.segmentId() == 1);
    return error.record();
  }
  fail(__FILE__, __LINE__, "nothing was unread");
}

const Case shortSegment("unread", "reading a file cut short fails until its bytes are back", [](Random& random) {
  for (const bool checked : {false, true}) {
    Stage stage(random, false);
    const SearchOutcome before = stage.search();
    if (!checked) stage.reopen();
    const std::vector<char> intact = bytesOf(stage.path());
    const auto makeShort = [&] { std::filesystem::resize_file(stage.path(), 4096); };
    const auto search = [&] { stage.search(); };
    makeShort();
    const uint32_t record = unreadIn(search, ErrorCode::io);
    CHECK(record < records - 1 && unreadIn(search, ErrorCode::io) == record);
    // Other records that are read in the meantime stay unjudged.
    stage.index.createSegment(2, stage.directory.file("2.seg"));
    const std::vector<uint32_t> last{records - 1}, all{0, records / 2, records - 1};
    unreadIn([&] { stage.index.copyRecords(1, last, 2, {}); }, ErrorCode::io);
    // The bytes are still missing.
    CHECK(stage.index.verifyRecord(1, record).wholeSegment);
    putBytes(stage.path(), intact);
    CHECK(stage.index.verifyRecord(1, record).damage.empty());
    CHECK(same(before, stage.search()));
    CHECK(stage.index.copyRecords(1, last, 2, {}).size() == 1);

    makeShort();
    unreadIn([&] { stage.index.copyRecords(1, all, 2, {}); }, ErrorCode::io);
    unreadIn([&] { stage.index.buildCodes(1, {}); }, ErrorCode::io);
    unreadIn([&] { stage.index.buildPostings(1, {}); }, ErrorCode::io);
    putBytes(stage.path(), intact);
    CHECK(stage.index.verifyRecord(1, record).damage.empty());
    CHECK(same(before, stage.search()));
  }
});

const Case flipped("unread", "a damaged record is used again once it reads as written", [](Random& random) {
  Stage stage(random, false);
  const SearchOutcome before = stage.search();
  stage.reopen();
  const std::vector<char> intact = bytesOf(stage.path());
  std::vector<char> damaged = intact;
  // A byte within the vectors of a record in the middle.
  damaged[intact.size() / 2] ^= 1;
  putBytes(stage.path(), damaged);
  const uint32_t record = unreadIn([&] { stage.search(); }, ErrorCode::corrupt);
  const auto found = stage.index.verifyRecord(1, record);
  CHECK(!found.damage.empty() && !found.wholeSegment);
  CHECK(stage.index.verifyRecord(1, record + 1).damage.empty());
  putBytes(stage.path(), intact);
  // The record counts as damaged until it has been read again.
  CHECK(unreadIn([&] { stage.search(); }, ErrorCode::corrupt) == record);
  CHECK(stage.index.verifyRecord(1, record).damage.empty());
  CHECK(same(before, stage.search()));
});

const Case shortCodes("unread", "codes that cannot be read are not used", [](Random& random) {
  for (const Plan plan : {Plan::codes, Plan::lists, Plan::graph}) {
    Stage stage(random, true);
    const SearchOutcome exact = stage.search();
    stage.request.plan = plan;
    CHECK(stage.search().preselected);
    std::filesystem::resize_file(stage.path(".codes"), 0);
    const SearchOutcome outcome = stage.search();
    CHECK(outcome.codesLost && !outcome.preselected && same(exact, outcome));
    CHECK(stage.index.segments().front().centroids == 0 && !stage.search().codesLost);
    stage.index.buildCodes(1, {});
    CHECK(stage.search().preselected);
  }
});

const Case changedCodes("unread", "where codes lie does not change with their file", [](Random& random) {
  Stage stage(random, true);
  stage.request.plan = Plan::codes;
  const SearchOutcome before = stage.search();
  std::vector<char> bytes = bytesOf(stage.path(".codes"));
  std::fill(bytes.begin() + 64, bytes.begin() + 64 + 2 * 4 * records, char(0xff));
  putBytes(stage.path(".codes"), bytes);
  CHECK(same(before, stage.search()));
});

const Case shortPostings("unread", "filters read the records where postings cannot be read", [](Random& random) {
  for (const bool cutShort : {false, true}) {
    Stage stage(random, false);
    stage.request.terms = {term(1)};
    const SearchOutcome before = stage.search();
    std::vector<char> bytes = bytesOf(stage.path(".postings"));
    // The offsets of three terms, after their keys.
    std::fill(bytes.begin() + 64 + 64, bytes.begin() + 64 + 64 + 16, char(0xff));
    if (cutShort) {
      std::filesystem::resize_file(stage.path(".postings"), 0);
    } else {
      putBytes(stage.path(".postings"), bytes);
    }
    CHECK(same(before, stage.search()));
    CHECK(stage.index.segments().front().counts.postingBytes == 0);
    stage.index.buildPostings(1, {});
    CHECK(same(before, stage.search()) && stage.index.segments().front().counts.postingBytes > 0);
  }
});

const Case deadInActive("unread", "an active segment opens beside a damaged record nobody sees", [](Random& random) {
  for (const uint64_t died : {uint64_t(2), generationNever}) {
    const TemporaryDirectory directory;
    const Clusters clusters(random, dim, 30);
    const std::string path = directory.file("1.seg");
    uint64_t vectors = 0;
    {
      const auto segment = Segment::create(1, path, dim);
      for (uint32_t r = 0; r < 3; ++r)
        segment->append(assembleRecord(randomRecord(random, clusters, r + 1, {30}), dim));
      segment->sync();
      const auto mapping = segment->mapping();
      vectors = uint64_t(segment->view(*mapping, 1).vectors() - reinterpret_cast<const int8_t*>(mapping->base()));
    }
    std::vector<char> bytes = bytesOf(path);
    bytes[vectors] ^= 1;
    putBytes(path, bytes);
    Engine engine(1, "auto");
    Index index(engine.kernel(), IndexOptions{dim, exactMax});
    CHECK(index.openSegment(1, path, 3, false).counts.records == 3);
    const std::vector<Index::LifespanLoad> lifespans{{{1, 0}, 1, 1, generationNever}, {{1, 1}, 2, 1, died}};
    if (died == generationNever) {
      CHECK_ERROR(index.loadLifespans(lifespans), ErrorCode::corrupt);
    } else {
      index.loadLifespans(lifespans);
      // Nobody knows its terms, so it may have any.
      const auto segment = index.snapshot().front().segment;
      const std::vector<Term> terms{term(1)};
      CHECK(segment->recordsMatching(terms, 3, [] {}) == std::vector<uint32_t>{1});
      CHECK(segment->visitCarriers(
                terms, 3, [] {}, [](size_t, const std::vector<uint32_t>&) { return true; }) == std::vector<uint32_t>{1});
      CHECK(index.seal(1).counts.sealed);
    }
  }
});

}  // namespace
}  // namespace maxsimd::test
