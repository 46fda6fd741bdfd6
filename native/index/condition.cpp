#include "index/condition.h"

#include "files/error.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
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
      require(sets <= conditionSetsMax, "where holds too many sets");
      condition_.steps.push_back(std::move(step));
    }
    require(sets == 1, "where must make one set");
    auto& fields = condition_.fields;
    std::sort(fields.begin(), fields.end());
    fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
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
      std::memcpy(step.terms.emplace_back().data(), take(termBytes).data(), termBytes);
    }
  }

  void readRange(Condition::Step& step) {
    const uint8_t flags = take(1).front();
    require(flags >> 4 <= uint8_t(Compared::prefix), "where compares values of no kind");
    step.compared = Compared(flags >> 4);
    step.field = stringOf(readText());
    condition_.fields.push_back(step.field);
    const auto low = boundKey(step.compared, readText()), high = boundKey(step.compared, readText());
    const bool hasLow = flags & (aboveLow | lowItself), hasHigh = flags & (belowHigh | highItself);
    require((!hasLow || low) && (!hasHigh || high), "where holds a bound that is no value");
    step.range = {std::string(), std::string(keysEnd), false, true};
    if (step.compared == Compared::values) {
      require(hasLow || hasHigh, "where holds a range without bounds");
      const auto [first, behind] = typeOf(hasLow ? *low : *high);
      require(!hasLow || !hasHigh || (first <= *high && *high < behind), "where holds bounds of two types");
      step.range = {std::string(first), std::string(behind), false, true};
    }
    if (step.compared == Compared::prefix) {
      require(hasLow && !hasHigh && low->starts_with(stringKeys), "where holds a beginning that is no string");
      // UTF-8 has no byte 0xff, so the last one has a next one.
      step.range.high = *low;
      step.range.high.back() += 1;
    }
    if (hasLow) std::tie(step.range.low, step.range.lowExcluded) = std::pair(*low, !(flags & lowItself));
    if (hasHigh) std::tie(step.range.high, step.range.highExcluded) = std::pair(*high, !(flags & highItself));
  }

  /// Nothing for a token that is no bound.
  static std::optional<std::string> boundKey(Compared compared, std::string_view token) {
    if (token.empty() || compared == Compared::presence) return std::nullopt;
    if (compared == Compared::dates) return dateKey(token);
    std::string key = valueKey(token);
    return isCut(key) ? std::nullopt : std::optional(std::move(key));
  }

  /// The first key of the type of a value, and the first one behind them.
  static std::pair<std::string_view, std::string_view> typeOf(std::string_view key) {
    if (key < stringKeys) return {numberKeys, stringKeys};
    return key < otherKeys ? std::pair(stringKeys, otherKeys) : std::pair(otherKeys, keysEnd);
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

  std::span<const uint8_t> bytes_;
  Condition condition_;
};

void setAll(Bitmap& set, std::span<const uint32_t> records) {
  for (const uint32_t record : records) {
    if (record < set.size()) set.set(record);
  }
}

/// Term sets made in one pass: as many as fit into `termSetsBytes`, and at least `termSetsLeast`. One pass for all
/// steps would need a set for each of up to 256 values.
constexpr size_t termSetsBytes = size_t(4) << 20, termSetsLeast = 8;

/// Evaluates one condition over one segment.
class ConditionRun {
 public:
  ConditionRun(const Condition& condition, const SegmentSnapshot& snapshot, uint64_t generation,
               const Checkpoint& checkpoint)
      : condition_(condition), snapshot_(snapshot), generation_(generation), checkpoint_(checkpoint) {}

  Bitmap run() {
    for (auto step = condition_.steps.begin(); step != condition_.steps.end(); ++step) {
      checkpoint_();
      switch (step->kind) {
        case Condition::Kind::terms: sets_.push_back(termSet(step)); break;
        case Condition::Kind::range: sets_.push_back(rangeSet(*step)); break;
        case Condition::Kind::negation: sets_.back().flip(); break;
        default: join(*step);
      }
    }
    setAll(sets_.back(), damaged_);
    return std::move(sets_.back());
  }

 private:
  using Steps = std::vector<Condition::Step>::const_iterator;

  Bitmap termSet(Steps step) {
    if (termSets_.empty()) readTermSets(step);
    Bitmap set = std::move(termSets_.front());
    termSets_.pop_front();
    return set;
  }

  /// Makes the sets of the next term steps in one pass over the segment.
  void readTermSets(Steps step) {
    const size_t setBytes = snapshot_.records / 8 + 1;
    const size_t most = std::max(termSetsLeast, termSetsBytes / setBytes);
    std::vector<std::pair<Term, size_t>> wanted;
    for (; step != condition_.steps.end() && termSets_.size() < most; ++step) {
      if (step->kind != Condition::Kind::terms) continue;
      for (const Term& term : step->terms) wanted.emplace_back(term, termSets_.size());
      termSets_.emplace_back(snapshot_.records);
    }
    std::sort(wanted.begin(), wanted.end());
    std::vector<Term> terms;
    for (const auto& [term, set] : wanted) {
      if (terms.empty() || terms.back() != term) terms.push_back(term);
    }
    const auto damaged = snapshot_.segment->visitCarriers(
        terms, snapshot_.records, checkpoint_, [&](size_t place, std::span<const uint32_t> records) {
          const auto first = std::lower_bound(wanted.begin(), wanted.end(), std::pair(terms[place], size_t(0)));
          for (auto each = first; each != wanted.end() && each->first == terms[place]; ++each) {
            setAll(termSets_[each->second], records);
          }
          return true;
        });
    damaged_.insert(damaged_.end(), damaged.begin(), damaged.end());
  }

  Bitmap rangeSet(const Condition::Step& step) const {
    const Segment& segment = *snapshot_.segment;
    const auto isSeen = [&](uint32_t record) { return segment.lifespan(record).visibleAt(generation_); };
    const auto column = snapshot_.values->complete(step.field, snapshot_.records, isSeen);
    if (column == nullptr) throw Error(ErrorCode::valuesMissing, "values of a field are not known");
    Bitmap set(snapshot_.records);
    column->addTo(set, step.compared, step.range);
    if (column->failed()) throw Error(ErrorCode::valuesMissing, "values of a field cannot be read");
    return set;
  }

  void join(const Condition::Step& step) {
    const bool all = step.kind == Condition::Kind::all;
    if (step.count == 0) {
      sets_.emplace_back(snapshot_.records);
      if (all) sets_.back().flip();
    }
    for (size_t left = step.count; left > 1; --left) {
      const Bitmap last = std::move(sets_.back());
      sets_.pop_back();
      if (all) sets_.back().keep(last);
      else sets_.back().add(last);
    }
  }

  const Condition& condition_;
  const SegmentSnapshot& snapshot_;
  const uint64_t generation_;
  const Checkpoint& checkpoint_;
  /// The stack of the postfix program.
  std::vector<Bitmap> sets_;
  /// Sets of the next steps that look up terms.
  std::deque<Bitmap> termSets_;
  std::vector<uint32_t> damaged_;
};

}  // namespace

Condition readCondition(std::span<const uint8_t> bytes) { return ConditionReader(bytes).read(); }

Bitmap recordsMeeting(const Condition& condition, const SegmentSnapshot& snapshot, uint64_t generation,
                      const Checkpoint& checkpoint) {
  return ConditionRun(condition, snapshot, generation, checkpoint).run();
}

}  // namespace maxsimd
