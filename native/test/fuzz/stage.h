// The targets' common input: a small sealed segment with postings, codes and a codebook, made once.
#pragma once

#include "index/index.h"
#include "kernels/dispatch.h"
#include "search/search.h"
#include "store/segment.h"
#include "test/fuzz/targets.h"
#include "test/sample.h"

#include <cmath>

namespace maxsimd::test {

struct FuzzStage {
  static constexpr uint32_t dim = 8;
  static constexpr uint32_t records = 6;
  static constexpr uint64_t id = 7;

  TemporaryDirectory directory;
  Random random{1};
  Clusters clusters{random, dim, 5};
  const Kernel& kernel = *findKernel("auto");
  Pool pool{1};
  const std::string path = directory.file("7.seg");
  const std::string codes = path + ".codes", postings = path + ".postings";
  static constexpr const char* field = "v";
  std::string codebook, column;
  Bytes active, sealed;
  std::vector<Index::LifespanChange> born;
  std::vector<float> query;

  FuzzStage() {
    Index index(kernel, {dim, 0});
    index.createSegment(id, path);
    for (uint32_t r = 0; r < records; ++r) {
      const auto record = randomRecord(random, clusters, r + 1, {2, 3}, {term(uint8_t(r % 2)), term(9)});
      born.push_back({id, index.append(id, record)});
    }
    active = readFile(path);
    // The space after the records is zeros.
    while (active.size() > 4096 && active.back() == 0) active.pop_back();
    active.resize((active.size() + 4095) / 4096 * 4096);
    index.seal(id);
    sealed = readFile(path);
    index.buildCodes(id, {});
    const std::vector<std::string> fields{field};
    std::vector<uint32_t> numbers;
    for (const auto& [segmentId, record] : born) numbers.push_back(record);
    index.addValues(id, fields, numbers,
                    std::vector<std::string>{R"({"v":-12.5})", R"({"v":"2024-01-03"})", R"({"v":[1,"a",null]})",
                                             R"({"v":"2024-01-01T10:00:00+02:00"})", R"({})", R"({"v":"text"})"});
    column = path + index.saveValues(id, fields).written.front();
    codebook = directory.file(index.segments().front().codebook);
    query = clusters.near(random, 1);
  }

  ColumnPlace columnPlace() const {
    return {path, Segment::open(id, path, dim, records, true)->identity()};
  }

  IndexSearch request(Plan plan) const { return searchOf(query, 1, 5, 8, plan); }

  /// Opens the segment with the files beside it and searches. Codes decide which chunks are scored, but never change a
  /// score.
  void searchByCodes() {
    Index index(kernel, {dim, 0});
    index.openSegment(id, path, records, true);
    index.publish(1, born, {});
    IndexSearch all = request(Plan::exact);
    all.topK = all.candidateK = 2 * records;
    const auto exact = search(index, pool, all).results;
    CHECK(exact.size() == 2 * records);
    for (const Plan plan : {Plan::codes, Plan::lists, Plan::graph}) {
      const auto outcome = search(index, pool, request(plan));
      CHECK(!outcome.codesLost && outcome.results.size() == 5);
      for (const auto& found : outcome.results) {
        const auto same = [&](const auto& other) {
          return other.versionId == found.versionId && other.chunkIndex == found.chunkIndex &&
                 other.score == found.score;
        };
        CHECK(std::count_if(exact.begin(), exact.end(), same) == 1);
        CHECK(!std::isnan(found.candidateScore));
      }
    }
  }
};

}  // namespace maxsimd::test
