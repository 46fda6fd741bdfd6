// Metadata of one field in random records, and the column of it.
#pragma once

#include "test/check.h"
#include "values/field_values.h"
#include "values/json_values.h"

#include <algorithm>
#include <map>
#include <set>

namespace maxsimd::test {

/// The tokens that a record has of a field, and whether they are items of an array.
struct Stored {
  std::vector<std::string> tokens;
  bool isArray = false;

  std::string token() const {
    if (!isArray) return tokens.empty() ? "" : tokens.front();
    std::string text = "[";
    for (const std::string& token : tokens) text += (text.size() > 1 ? "," : "") + token;
    return text + "]";
  }
};

using ValuePlaces = std::map<std::string, std::vector<ValuePlace>>;

/// Each distinct value of a column once, with its places.
inline ValuePlaces valuesOf(const FieldColumn& column) {
  ValuePlaces values;
  for (const auto& run : column.runs()) {
    std::string before;
    uint64_t items = 0;
    for (ValueRun::Cursor value(*run); !value.atEnd(); value.next()) {
      CHECK(before <= value.key() && !value.places().empty());
      before = value.key();
      items += value.places().size();
      auto& all = values[before];
      all.insert(all.end(), value.places().begin(), value.places().end());
    }
    CHECK(items == run->items());
  }
  for (auto& [key, places] : values) std::sort(places.begin(), places.end());
  return values;
}

/// Whether two sets are the same within the bits of the first.
inline bool isSame(const Bitmap& some, const Bitmap& others) {
  for (uint32_t record = 0; record < some.size(); ++record) {
    if (some.test(record) != others.test(record)) return false;
  }
  return true;
}

struct RandomColumn {
  std::vector<Stored> stored;
  ValuePlaces expected;
  FieldColumn column;

  /// Its values are added in some order, in parts of up to `partMost` records. `longMost`: bytes of the longest texts.
  RandomColumn(Random& random, uint32_t records, uint32_t partMost, uint32_t longMost = 20) : stored(records) {
    std::vector<uint32_t> order(records);
    for (uint32_t record = 0; record < records; ++record) order[record] = record;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t first = 0; first < order.size();) {
      const size_t next = std::min<size_t>(order.size(), first + between(random, 1, partMost));
      std::vector<std::string> tokens;
      for (size_t n = first; n < next; ++n) tokens.push_back(fill(random, order[n], longMost));
      std::vector<FieldColumn::RecordValue> values;
      for (size_t n = first; n < next; ++n) values.push_back({order[n], tokens[n - first]});
      CHECK(!column.knows(order[first]));
      column = column.with(values);
      CHECK(column.knows(order[first]));
      first = next;
    }
    for (auto& [key, places] : expected) std::sort(places.begin(), places.end());
  }

  uint32_t records() const { return uint32_t(stored.size()); }

  /// The bytes of the distinct values as JSON tokens, and how many items there are.
  std::pair<uint64_t, uint64_t> size() const {
    uint64_t bytes = 0, items = 0;
    for (const auto& [key, places] : expected) {
      bytes += isCut(key) ? key.size() : tokenOfKey(key).size();
      items += places.size();
    }
    return {bytes, items};
  }

  Bitmap plainly(Compared compared, const KeyRange& range) const {
    Bitmap found(records());
    for (uint32_t record = 0; record < records(); ++record) {
      if (stored[record].isArray != (compared == Compared::items)) continue;
      for (const std::string& token : stored[record].tokens) {
        const auto key = compared == Compared::dates ? dateKey(token) : valueKey(token);
        if (key && !isCut(*key) && !range.isBelow(*key) && !range.isAbove(*key)) found.set(record);
      }
    }
    return found;
  }

  /// Compares ranges over `column` with a scan of the values.
  void check(Random& random, const FieldColumn& given) const {
    CHECK(valuesOf(given) == expected);
    for (int round = 0; round < 50; ++round) {
      const Compared compared = Compared(between(random, 0, 2));
      const KeyRange range{bound(random, compared), bound(random, compared), bool(between(random, 0, 1)),
                           bool(between(random, 0, 1))};
      Bitmap found(records());
      given.addTo(found, compared, range);
      CHECK(isSame(found, plainly(compared, range)));
    }
    Bitmap present(records());
    given.addTo(present, Compared::presence, {});
    for (uint32_t record = 0; record < records(); ++record) {
      CHECK(present.test(record) == (stored[record].isArray || !stored[record].tokens.empty()));
    }
  }

 private:
  static std::string someDate(Random& random) {
    char text[40];
    std::snprintf(text, sizeof text, "\"20%02u-0%u-1%uT0%u:00:00%s\"", between(random, 0, 40), between(random, 1, 9),
                  between(random, 0, 9), between(random, 0, 9), between(random, 0, 1) ? "Z" : "+05:00");
    return text;
  }

  static std::string someToken(Random& random, uint32_t longMost) {
    switch (between(random, 0, 3)) {
      case 0: return std::to_string(between(random, 0, 500));
      case 1: return someDate(random);
      case 2: return '"' + std::string(between(random, 0, longMost), char('a' + between(random, 0, 2))) + '"';
      default: return between(random, 0, 1) ? "true" : "null";
    }
  }

  static std::string bound(Random& random, Compared compared) {
    return compared == Compared::dates ? *dateKey(someDate(random)) : cutKey(valueKey(someToken(random, 20)));
  }

  std::string fill(Random& random, uint32_t record, uint32_t longMost) {
    Stored& one = stored[record];
    one.isArray = between(random, 0, 3) == 0;
    for (uint32_t t = between(random, 0, one.isArray ? 5 : 1); t > 0; --t) {
      one.tokens.push_back(someToken(random, longMost));
    }
    std::set<std::string> keys;
    for (const std::string& token : one.tokens) keys.insert(cutKey(valueKey(token)));
    for (const std::string& key : keys) expected[key].emplace_back(record, one.isArray);
    return one.token();
  }
};

}  // namespace maxsimd::test
