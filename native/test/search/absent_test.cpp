// Searches of a segment that is being fetched. Missing parts hold garbage here instead of zeros, so that any read of
// them shows as damage.
#include "files/file.h"
#include "runtime/engine.h"
#include "search/search.h"
#include "test/sample.h"

#include <cstdio>
#include <numeric>
#include <optional>
#include <thread>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 32, documents = 300;
constexpr uint64_t partBytes = 4096;

/// One index has a complete segment with codes, another a copy of it that comes in parts.
class Fetching {
 public:
  explicit Fetching(Random& random) : clusters_(random, dim, 60), engine_(2, "auto") {
    whole_ = std::make_unique<Index>(engine_.kernel(), IndexOptions{dim, 1000});
    whole_->createSegment(1, path());
    std::vector<Index::LifespanChange> born;
    for (uint32_t r = 0; r < documents; ++r) {
      const std::vector<uint32_t> chunkRows(between(random, 1, 3), between(random, 1, 60));
      whole_->append(1, randomRecord(random, clusters_, r + 1, chunkRows, {term(uint8_t(r % 5))}));
      born.push_back({1, r});
    }
    whole_->seal(1);
    whole_->buildCodes(1, {});
    whole_->publish(1, born, {});

    const File source = File::openReadOnly(path());
    bytes_.resize(source.size());
    source.read(0, bytes_.data(), bytes_.size());
    parts_.resize((partCount() + 7) / 8);
    File copy = File::create(copyPath());
    const std::vector<uint8_t> garbage(bytes_.size(), 0xa5);
    copy.write(0, garbage.data(), garbage.size());
  }

  std::string path() const { return directory_.file("1.seg"); }
  uint32_t partCount() const { return uint32_t((bytes_.size() + partBytes - 1) / partBytes); }
  uint32_t present() const {
    return std::accumulate(parts_.begin(), parts_.end(), 0u,
                           [](uint32_t sum, uint8_t bits) { return sum + uint32_t(std::popcount(bits)); });
  }
  Index& whole() { return *whole_; }
  Index& copy() { return *copy_; }

  /// Writes the parts to the file. The open segment does not know of them yet.
  void write(const std::vector<AbsentPart>& parts, uint8_t flip = 0) {
    File copy = File::openExisting(copyPath());
    for (const auto& [id, part] : parts) {
      CHECK(id == 1 && part < partCount() && (parts_[part / 8] >> part % 8 & 1) == 0);
      const uint64_t offset = part * partBytes;
      std::vector<uint8_t> content(bytes_.begin() + long(offset),
                                   bytes_.begin() + long(std::min<uint64_t>(offset + partBytes, bytes_.size())));
      for (uint8_t& byte : content) byte ^= flip;
      copy.write(offset, content.data(), content.size());
      parts_[part / 8] |= uint8_t(1u << part % 8);
    }
  }
  void fetch(const std::vector<AbsentPart>& parts) {
    write(parts);
    copy_->addParts(1, parts_);
  }
  std::vector<AbsentPart> missing() const {
    std::vector<AbsentPart> missing;
    for (uint32_t part = 0; part < partCount(); ++part) {
      if ((parts_[part / 8] >> part % 8 & 1) == 0) missing.push_back({1, part});
    }
    return missing;
  }

  /// Opens the copy and supplies the parts that it asks for. Returns how often it asked.
  int open() {
    copy_ = std::make_unique<Index>(engine_.kernel(), IndexOptions{dim, 1000});
    for (int asked = 0;; ++asked) {
      try {
        const PartialCopy partial{copyPath(), partBytes, parts_};
        CHECK(copy_->openSegment(1, path(), documents, true, &partial).centroids > 0);
        std::vector<Index::LifespanLoad> lifespans;
        for (uint32_t r = 0; r < documents; ++r) lifespans.push_back({{1, r}, r + 1, 1, generationNever});
        copy_->loadLifespans(lifespans);
        return asked;
      } catch (const AbsentParts& absent) {
        write(absent.parts());
      }
    }
  }

  SearchOutcome search(Index& index, const IndexSearch& request) {
    return maxsimd::search(index, engine_.compute(), request);
  }
  /// Searches the copy and supplies the parts that it asks for. Counts how often it asked.
  SearchOutcome searchCopy(const IndexSearch& request, int& asked) {
    for (;; ++asked) {
      try {
        return search(*copy_, request);
      } catch (const AbsentParts& absent) {
        fetch(absent.parts());
      }
    }
  }

  IndexSearch request(Random& random, Plan plan) const {
    IndexSearch request{};
    const auto topic = uint32_t(random() % clusters_.centres.size());
    for (uint32_t i = 0; i < 16; ++i) {
      const auto vector = clusters_.near(random, (topic + i % 5) % uint32_t(clusters_.centres.size()));
      request.query.insert(request.query.end(), vector.begin(), vector.end());
      request.offsets.push_back(0.0f);
    }
    request.topK = 5;
    request.candidateK = 8;
    request.generation = 1;
    request.plan = plan;
    request.components = true;
    return request;
  }

 private:
  std::string copyPath() const { return directory_.file("copy"); }

  TemporaryDirectory directory_;
  Clusters clusters_;
  Engine engine_;
  std::unique_ptr<Index> whole_, copy_;
  std::vector<uint8_t> bytes_, parts_;
};

void checkEqual(const SearchOutcome& a, const SearchOutcome& b) {
  CHECK(a.results.size() == b.results.size() && !a.results.empty());
  for (size_t i = 0; i < a.results.size(); ++i) {
    CHECK(a.results[i].versionId == b.results[i].versionId && a.results[i].chunkIndex == b.results[i].chunkIndex);
    CHECK(a.results[i].score == b.results[i].score);
  }
  CHECK(a.similarities == b.similarities && a.documentTokens == b.documentTokens);
}

const Case inParts("search", "a segment is searched while it is fetched, with the same answers", [](Random& random) {
  Fetching fetching(random);
  // It asks for header, trailer and directory.
  CHECK(fetching.open() <= 3);
  const uint32_t opened = fetching.present();
  CHECK(opened < fetching.partCount() / 4);
  for (const Plan plan : {Plan::codes, Plan::lists, Plan::graph}) {
    const IndexSearch request = fetching.request(random, plan);
    int asked = 0;
    checkEqual(fetching.searchCopy(request, asked), fetching.search(fetching.whole(), request));
    // It asks once, for all candidates together.
    CHECK(asked <= 1);
  }
  CHECK(fetching.present() > opened && fetching.present() < fetching.partCount());
  IndexSearch filtered = fetching.request(random, Plan::automatic);
  filtered.terms = {term(3)};
  int asked = 0;
  checkEqual(fetching.searchCopy(filtered, asked), fetching.search(fetching.whole(), filtered));
  CHECK(asked <= 1);
  IndexSearch matched = fetching.request(random, Plan::codes);
  const std::vector<Term> terms{term(3)};
  const std::vector<uint32_t> termCounts{1};
  matched.match = SpanMatch{Spans::of(terms, termCounts), {1.0f}};
  asked = 0;
  checkEqual(fetching.searchCopy(matched, asked), fetching.search(fetching.whole(), matched));
  CHECK(asked <= 1);
  const IndexSearch all = fetching.request(random, Plan::exact);
  asked = 0;
  checkEqual(fetching.searchCopy(all, asked), fetching.search(fetching.whole(), all));
  CHECK(asked == 1);
});

const Case wholeNeeded("search", "reading all records of a segment that is being fetched fails", [](Random& random) {
  Fetching fetching(random);
  CHECK(remove((fetching.path() + ".postings").c_str()) == 0);
  fetching.open();
  const std::vector<AbsentPart> missing = fetching.missing();
  IndexSearch filtered = fetching.request(random, Plan::automatic);
  filtered.terms = {term(3)};
  std::vector<AbsentPart> asked;
  try {
    fetching.search(fetching.copy(), filtered);
  } catch (const AbsentParts& absent) {
    asked = absent.parts();
  }
  CHECK(asked == missing);
  TemporaryDirectory other;
  fetching.copy().createSegment(2, other.file("2.seg"));
  std::vector<uint32_t> records(documents);
  std::iota(records.begin(), records.end(), 0u);
  CHECK_ERROR(fetching.copy().copyRecords(1, records, 2, {}), ErrorCode::absent);
  CHECK_ERROR(fetching.copy().buildCodes(1, {}), ErrorCode::absent);
  fetching.fetch(missing);
  CHECK(fetching.copy().copyRecords(1, records, 2, {}).size() == documents);
  checkEqual(fetching.search(fetching.copy(), filtered), fetching.search(fetching.whole(), filtered));
});

const Case wrongPart("search", "a part that came wrong is damage, where a record is read first", [](Random& random) {
  Fetching fetching(random);
  fetching.open();
  fetching.write(fetching.missing(), 1);
  fetching.open();
  CHECK_ERROR(fetching.search(fetching.copy(), fetching.request(random, Plan::codes)), ErrorCode::corrupt);
});

const Case meanwhile("search", "parts come while searches run", [](Random& random) {
  Fetching fetching(random);
  fetching.open();
  const IndexSearch request = fetching.request(random, Plan::exact);
  std::thread coming([&fetching, missing = fetching.missing()] {
    for (const AbsentPart& part : missing) fetching.fetch({part});
  });
  std::optional<SearchOutcome> found;
  while (!found) {
    try {
      found = fetching.search(fetching.copy(), request);
    } catch (const AbsentParts&) {
    }
  }
  coming.join();
  checkEqual(*found, fetching.search(fetching.whole(), request));
});

const Case wrongBits("search", "a copy with too few bits for its parts is refused", [](Random& random) {
  Fetching fetching(random);
  fetching.open();
  CHECK_ERROR(fetching.copy().addParts(1, std::vector<uint8_t>(1)), ErrorCode::invalidArgument);
});

}  // namespace
}  // namespace maxsimd::test
