#include "index/condition.h"

#include "files/error.h"
#include "index/json_values.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

namespace maxsimd {
namespace {

constexpr uint8_t aboveLow = 1, lowItself = 2, belowHigh = 4, highItself = 8;

class ConditionReader {
 public:
  explicit ConditionReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  Condition read() {
    size_t sets = 0;
    while (!bytes_.empty()) {
      Condition::Step step = readStep();
      require(step.count <= sets, "where takes sets that are not there");
      sets = sets - step.count + 1;
      condition_.steps.push_back(std::move(step));
    }
    require(sets == 1, "where must make one set");
    settle();
    return std::move(condition_);
  }

 private:
  Condition::Step readStep() {
    Condition::Step step{Condition::Kind(take(1).front())};
    switch (step.kind) {
      case Condition::Kind::terms: readTerms(step); return step;
      case Condition::Kind::range: readRange(step); return step;
      case Condition::Kind::all:
      case Condition::Kind::any: step.count = readCount(); return step;
      case Condition::Kind::negation: step.count = 1; return step;
    }
    throw Error(ErrorCode::invalidArgument, "where holds a step of no kind");
  }

  void readTerms(Condition::Step& step) {
    for (size_t left = readCount(); left > 0; --left) {
      Term term;
      std::memcpy(term.data(), take(termBytes).data(), termBytes);
      // The place among all terms as they came, until they are in order.
      step.terms.push_back(condition_.terms.size());
      condition_.terms.push_back(term);
    }
  }

  void readRange(Condition::Step& step) {
    const uint8_t flags = take(1).front();
    step.field = stringOf(readText());
    condition_.fields.push_back(step.field);
    const auto low = valueKey(readText()), high = valueKey(readText());
    const bool hasLow = flags & (aboveLow | lowItself), hasHigh = flags & (belowHigh | highItself);
    require((hasLow || hasHigh) && (!hasLow || low) && (!hasHigh || high), "where holds a bound that is no value");
    const std::string& given = hasLow ? *low : *high;
    const bool numbers = given < stringKeys;
    require(!hasLow || !hasHigh || numbers == (*high < stringKeys), "where holds bounds of two types");
    step.range = {std::string(numbers ? numberKeys : stringKeys), std::string(numbers ? stringKeys : behindKeys), false,
                  true};
    if (hasLow) std::tie(step.range.low, step.range.lowExcluded) = std::pair(*low, !(flags & lowItself));
    if (hasHigh) std::tie(step.range.high, step.range.highExcluded) = std::pair(*high, !(flags & highItself));
  }

  size_t readCount() {
    const auto bytes = take(2);
    return size_t(bytes[0]) | size_t(bytes[1]) << 8;
  }

  std::string_view readText() {
    const auto bytes = take(readCount());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::span<const uint8_t> take(size_t count) {
    require(count <= bytes_.size(), "where ends too early");
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  void settle() {
    const std::vector<Term> given = condition_.terms;
    const auto makeDistinct = [](auto& values) {
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
    };
    makeDistinct(condition_.terms);
    makeDistinct(condition_.fields);
    const auto& terms = condition_.terms;
    for (Condition::Step& step : condition_.steps) {
      for (size_t& place : step.terms) {
        place = size_t(std::lower_bound(terms.begin(), terms.end(), given[place]) - terms.begin());
      }
    }
  }

  std::span<const uint8_t> bytes_;
  Condition condition_;
};

void setAll(Bitmap& set, std::span<const uint32_t> records) {
  for (const uint32_t record : records) {
    if (record < set.size()) set.set(record);
  }
}

}  // namespace

Condition readCondition(std::span<const uint8_t> bytes) { return ConditionReader(bytes).read(); }

Bitmap recordsMeeting(const Condition& condition, const SegmentSnapshot& snapshot, uint64_t generation,
                      const Checkpoint& checkpoint) {
  const Segment& segment = *snapshot.segment;
  const auto isSeen = [&](uint32_t record) { return segment.lifespan(record).visibleAt(generation); };
  std::vector<Bitmap> carrying(condition.terms.size(), Bitmap(snapshot.records));
  const auto damaged = segment.visitCarriers(
      condition.terms, snapshot.records, checkpoint,
      [&carrying](size_t term, std::span<const uint32_t> records) { setAll(carrying[term], records); });
  std::vector<Bitmap> sets;
  for (const Condition::Step& step : condition.steps) {
    checkpoint();
    Bitmap set(snapshot.records);
    if (step.kind == Condition::Kind::all) set.flip();
    for (const size_t term : step.terms) set.add(carrying[term]);
    if (step.kind == Condition::Kind::range && !snapshot.values->addTo(set, step.field, step.range, isSeen)) {
      throw Error(ErrorCode::valuesMissing, "values of a field are not known");
    }
    for (size_t left = step.count; left > 0; --left) {
      if (step.kind == Condition::Kind::all) set.keep(sets.back());
      else set.add(sets.back());
      sets.pop_back();
    }
    if (step.kind == Condition::Kind::negation) set.flip();
    sets.push_back(std::move(set));
  }
  setAll(sets.back(), damaged);
  return std::move(sets.back());
}

}  // namespace maxsimd
