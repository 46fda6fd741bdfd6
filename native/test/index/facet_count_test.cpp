// Compares counts of values with plain counts over records of several segments, in one go and in parts.
#include "index/facet_count.h"
#include "runtime/engine.h"
#include "test/sample.h"
#include "test/check.h"

#include <map>
#include <set>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 8;

struct Stage {
  TemporaryDirectory directory;
  Engine engine{1, "auto"};
  std::shared_ptr<Index> index = std::make_shared<Index>(engine.kernel(), IndexOptions{dim, 1000});
  uint64_t generation = 0;
  /// The numbers of each live version.
  std::map<uint64_t, std::vector<uint32_t>> live;

  /// A segment of so many records with so many numbers each, half of them below `distinct`. Some die.
  void addSegment(Random& random, uint64_t id, uint32_t records, uint32_t numbers, uint32_t distinct) {
    const Clusters clusters(random, dim, 2);
    index->createSegment(id, directory.file(std::to_string(id) + ".seg"));
    std::vector<Index::LifespanChange> born, died;
    std::vector<uint32_t> all;
    std::vector<std::string> objects;
    for (uint32_t record = 0; record < records; ++record) {
      const uint64_t versionId = id * 1000 + record;
      index->append(id, randomRecord(random, clusters, versionId, {1}));
      born.push_back({id, record});
      all.push_back(record);
      std::string array;
      std::vector<uint32_t> has;
      for (uint32_t n = 0; n < numbers; ++n) {
        has.push_back(between(random, 0, 1) ? between(random, 0, distinct) : distinct + record * numbers + n);
        array += (array.empty() ? "" : ",") + std::to_string(has.back());
      }
      objects.push_back(R"({"few":)" + std::to_string(record % 3) + R"(,"many":[)" + array + "]}");
      if (between(random, 0, 3) > 0) live[versionId] = std::move(has);
      else died.push_back({id, record});
    }
    index->publish(++generation, born, {});
    index->publish(++generation, {}, died);
    index->addValues(id, std::vector<std::string>{"few", "many", "none"}, all, objects);
  }

  FacetCount counting(std::vector<std::string> fields, uint32_t limit, uint32_t distinctMost = 1'000'000) const {
    return {index, {generation, {}, std::move(fields), limit, distinctMost, UINT64_MAX}};
  }

  std::map<std::string, uint64_t> plainCounts() const {
    std::map<std::string, uint64_t> counts;
    for (const auto& [versionId, numbers] : live) {
      for (const uint32_t number : std::set(numbers.begin(), numbers.end())) ++counts[valueKey(std::to_string(number))];
    }
    return counts;
  }
};

const Case counts("facets", "counts are those of a plain count, in one go and in parts", [](Random& random) {
  Stage stage;
  stage.addSegment(random, 1, 60, 700, 100);
  stage.addSegment(random, 2, 20, 2'600, 50);
  const auto plain = stage.plainCounts();
  for (const auto pauseAt : {Clock::time_point::max(), Clock::time_point::min()}) {
    FacetCount counting = stage.counting({"many", "few", "none"}, 1'000'000);
    int pauses = 0;
    while (!counting.run({}, pauseAt)) ++pauses;
    CHECK((pauses > 0) == (pauseAt == Clock::time_point::min()));
    CHECK(counting.documents() == stage.live.size() && !counting.tooMany() && counting.facets().size() == 3);
    const Facet& many = counting.facets().front();
    CHECK(many.distinct == plain.size() && many.values.size() == plain.size());
    std::map<std::string, uint64_t> found;
    for (size_t v = 0; v < many.values.size(); ++v) {
      const Facet::Value& value = many.values[v];
      found[value.key] = value.count;
      const auto& numbers = stage.live.at(value.versionId);
      CHECK(std::find(numbers.begin(), numbers.end(), uint32_t(std::stod(tokenOfKey(value.key)))) != numbers.end());
      if (v == 0) continue;
      const Facet::Value& before = many.values[v - 1];
      CHECK(before.count > value.count || (before.count == value.count && before.key < value.key));
    }
    CHECK(found == plain);
    CHECK(counting.facets()[1].distinct == 3 && counting.facets()[2].distinct == 0);
    FacetCount few = stage.counting({"many"}, 7);
    CHECK(few.run({}, Clock::time_point::max()) && few.facets().front().values.size() == 7);
    for (size_t v = 0; v < 7; ++v) CHECK(few.facets().front().values[v].key == many.values[v].key);
  }
});

const Case bounds("facets", "a field with too many values is named, and missing values are asked for", [](Random& random) {
  Stage stage;
  stage.addSegment(random, 1, 20, 50, 10);
  const auto distinct = uint32_t(stage.plainCounts().size());
  FacetCount most = stage.counting({"few", "many"}, 1, distinct);
  CHECK(most.run({}, Clock::time_point::max()) && !most.tooMany());
  FacetCount tooMany = stage.counting({"few", "many"}, 1, distinct - 1);
  CHECK(tooMany.run({}, Clock::time_point::max()) && tooMany.tooMany() == size_t(1));
  FacetCount unknown = stage.counting({"few", "other"}, 1);
  CHECK_ERROR(unknown.run({}, Clock::time_point::max()), ErrorCode::valuesMissing);
});

}  // namespace
}  // namespace maxsimd::test
