// Compares keys of metadata values with the values themselves, and columns of values with plain lists.
#include "values/field_values.h"
#include "test/check.h"
#include "values/column_file.h"
#include "values/field_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace maxsimd::test {
namespace {

/// value / 10^8
struct Number {
  __int128 value;
  std::string token;
};

/// One of the ways to write mantissa * 10^power.
Number someNumber(Random& random) {
  constexpr int powerMost = 8;
  const auto mantissa = int64_t(random() % uint64_t(std::pow(10, between(random, 0, 15))));
  const bool negative = between(random, 0, 1);
  int power = int(between(random, 0, 2 * powerMost)) - powerMost;
  __int128 value = mantissa;
  for (int times = power + powerMost; times > 0; --times) value *= 10;

  std::string digits = std::to_string(mantissa);
  for (uint32_t zeros = between(random, 0, 3); zeros > 0; --zeros, --power) digits += '0';
  if (between(random, 0, 1)) {
    const uint32_t places = between(random, 1, 20);
    while (digits.size() <= places) digits.insert(0, "0");
    digits.insert(digits.size() - places, ".");
    power += int(places);
  }
  if (power != 0 || between(random, 0, 3) == 0) {
    digits += between(random, 0, 1) ? 'e' : 'E';
    if (power >= 0 && between(random, 0, 1)) digits += '+';
    digits += std::to_string(power);
  }
  return {negative ? -value : value, (negative ? "-" : "") + digits};
}

const Case numbersInOrder("values", "keys of numbers have the order of their exact values", [](Random& random) {
  for (int round = 0; round < rounds(200'000); ++round) {
    const Number a = someNumber(random), b = someNumber(random);
    const auto x = valueKey(a.token), y = valueKey(b.token);
    CHECK(x >= numberKeys && x < stringKeys);
    CHECK((x < y) == (a.value < b.value) && (x == y) == (a.value == b.value));
    CHECK(valueKey(tokenOfKey(x)) == x);
  }
  const std::vector<std::string> ascending{"-1e99999999", "-12e30000", "-1e30000", "-1",         "-1e-30000",
                                           "-1e-30001",   "0e9",       "1e-40000", "1.5e-30002", "1e-30000",
                                           "2",           "1e29999",   "1e30001",  "99e123456789012345678"};
  for (size_t n = 0; n + 2 < ascending.size(); ++n) CHECK(valueKey(ascending[n]) < valueKey(ascending[n + 1]));
  for (const std::string& token : ascending) CHECK(valueKey(tokenOfKey(valueKey(token))) == valueKey(token));
  CHECK(valueKey("10e30000") == valueKey("1e30001") && valueKey("-0e99999999999999999999") == valueKey("0"));
  CHECK(valueKey(ascending.back()) > otherKeys && tokenOfKey(valueKey("-1250")) == "-125e1");
});

using Points = std::vector<uint32_t>;

Points somePoints(Random& random) {
  Points points(between(random, 0, 4));
  for (uint32_t& point : points) {
    switch (between(random, 0, 4)) {
      case 0: point = between(random, 0x20, 0x7e); break;
      case 1: point = between(random, 0x80, 0x7ff); break;
      case 2: point = between(random, 0xe000, 0xffff); break;
      case 3: point = between(random, 0x10000, 0x10ffff); break;
      default: point = 'a';
    }
  }
  return points;
}

/// Writes each code point as it is or as an escape; those beyond 0xffff as a pair of surrogates.
std::string tokenOf(Random& random, const Points& points) {
  std::string token = "\"";
  const auto escape = [&token](uint32_t unit) {
    char text[8];
    std::snprintf(text, sizeof text, "\\u%04x", unit);
    token += text;
  };
  for (const uint32_t point : points) {
    if (point < 0x80 && point != '"' && point != '\\' && between(random, 0, 1)) token += char(point);
    else if (point < 0x10000) escape(point);
    else escape(0xd800 + ((point - 0x10000) >> 10)), escape(0xdc00 + ((point - 0x10000) & 0x3ff));
  }
  return token + '"';
}

const Case stringsInOrder("values", "keys of strings are in the order of their code points", [](Random& random) {
  for (int round = 0; round < rounds(100'000); ++round) {
    const Points a = somePoints(random), b = somePoints(random);
    const auto x = valueKey(tokenOf(random, a)), y = valueKey(tokenOf(random, b));
    CHECK(x >= stringKeys && x < otherKeys);
    CHECK((x < y) == (a < b) && (x == y) == (a == b));
    CHECK(valueKey(tokenOfKey(x)) == x);
  }
  CHECK(tokenOfKey(valueKey(R"("\ud800\u0001\u000a\/\"\\\ud83d\ude00")")) == "\"\\ud800\\u0001\\n/\\\"\\\\😀\"");
});

const Case othersAreEqual("values", "other values have one key however they are written", [](Random&) {
  CHECK(valueKey(R"({"b":[1.0,{"x":1,"x":2}],"\u0061":null})") == valueKey(R"({"a":null,"b":[10e-1,{"x":2}]})"));
  CHECK(tokenOfKey(valueKey(R"({"b":1.50,"a":"\u0061"})")) == R"({"a":"a","b":15e-1})");
  CHECK(valueKey("true") != valueKey(R"("true")") && valueKey("[]") != valueKey("{}") && valueKey("null") > otherKeys);
  const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
  CHECK(valueKey(deep) == valueKey(deep));
});

const Case longValues("values", "long values keep their order and are told apart", [](Random&) {
  const auto key = [](size_t bytes, char last) { return cutKey(valueKey('"' + std::string(bytes, 'a') + last + '"')); };
  CHECK(!isCut(key(255, 'b')) && isCut(key(256, 'b')));
  CHECK(key(256, 'b') > key(255, 'a') && key(256, 'b') < key(255, 'b') && key(300, 'b') != key(300, 'c'));
  CHECK(fullKeyBytes(key(3, 'b')) == 5 && fullKeyBytes(key(300, 'b')) == 302);
  const std::string token = '"' + std::string(300, 'a') + "c\"";
  const std::string object = R"({"x":1,"t":["a","\u0061)" + std::string(299, 'a') + R"(c"]})";
  CHECK(findToken(object, "t", key(300, 'c')) == token && !findToken(object, "t", key(300, 'b')));
  CHECK(!findToken(object, "x", key(300, 'c')) && !findToken(object, "y", key(300, 'c')));
});

const Case nestedFields("values", "a name with dots is a path, unless a member has the whole name", [](Random&) {
  FieldTokens tokens(R"({"a":{"b":1,"c":{"d":"x"},"b":2},"a.c":[3],"l":[{"d":1},{"e":2},4,[{"d":5}],{"d":[6,[7]]}],"e":[]})");
  const auto is = [&tokens](const char* field, const char* value) { return tokens.of(field) == value; };
  CHECK(is("a.b", "2") && is("a.c", "[3]") && is("a.c.d", R"("x")") && is("e", "[]") && is("l.d", "[1,6,[7]]"));
  CHECK(is("l.e", "[2]") && is("l.d.x", "") && is("e.d", "") && is("a.", "") && is(".a", "") && is("a.b.c", ""));
  CHECK(findToken(R"({"l":[{"d":1},{"d":2.0}]})", "l.d", valueKey("2")) == "2");
  const std::string deep(100'000, '['), path = "a" + std::string(1'000, '.');
  CHECK(FieldTokens("{\"a\":" + deep).of(path).empty());
});

const Case endings("values", "a column of nested values has another file than those of earlier releases", [](Random&) {
  const auto earlier = [](const std::string& field) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hashOf(field)));
    return std::string(".columns-") + digits;
  };
  CHECK(columnEnding("ab") == earlier("ab") && columnEnding("a.b") != earlier("a.b"));
});

const Case membersInOrder("values", "members of an object are found whatever they hold", [](Random&) {
  const auto members = membersOf(R"({"a":"},\"","b":[1,{"c":"]"}],"":{"a":{}},"a":-1.5e3})");
  CHECK(members.size() == 4);
  CHECK(members[0].value == R"("},\"")" && members[1].value == R"([1,{"c":"]"}])" && members[2].value == R"({"a":{}})");
  CHECK(members[2].name == R"("")" && members[3].name == R"("a")" && members[3].value == "-1.5e3");
  CHECK(membersOf("{}").empty() && membersOf("").empty());
});

const Case dates("values", "keys of dates have the order of time, and other strings have none", [](Random&) {
  const std::vector<std::string> ascending{"0000-01-01T00:00:00+23:59",          "0000-01-01",
                                           "1969-12-31T23:59:59.999999999Z",     "1970-01-01",
                                           "2024-02-29T00:00:00-00:01",          "2024-02-29T23:59:59.1z",
                                           "2024-02-29t23:59:59.100000001Z",     "2024-03-01",
                                           "9999-12-31T23:59:59.999999999-23:59"};
  for (size_t d = 0; d + 1 < ascending.size(); ++d) {
    const auto one = dateKey('"' + ascending[d] + '"'), next = dateKey('"' + ascending[d + 1] + '"');
    CHECK(one && next && *one < *next);
  }
  for (const char* text :
       {"2024-01-01 00:00:00Z", "2024-01-01T00:00Z", "2024-01-01T00:00:00", "2024-01-01T01:00:00+0100",
        "2024-01-01T01:00:00+01", "2024-01-01 00:00 UTC", "2024-01-01 00:00:00,0 -00:00"}) {
    CHECK(dateKey('"' + std::string(text) + '"') == dateKey(R"("2024-01-01")"));
  }
  CHECK(dateKey(R"("2016-12-31T23:59:60Z")") == dateKey(R"("2017-01-01T02:00:00.0000000009+02:00")"));
  for (const char* text : {"2023-02-29",
                           "2024-13-01",
                           "2024-00-01",
                           "2024-01-00",
                           "2024-01-01T24:00:00Z",
                           "2024-01-01T00:60:00Z",
                           "2024-01-01T00:00:61Z",
                           "2024-01-01T00:00:60Z",
                           "2024-01-01T00:00:00.Z",
                           "2024-01-01T00:00:00+24:00",
                           "2024-01-01T00:00:00+010",
                           "2024-01-01T00Z",
                           "2024-01-01  00:00Z",
                           "2024-01-01Z",
                           " 2024-01-01",
                           "2024-01-01 ",
                           "24-01-01",
                           "-2024-01-01",
                           "2024-1-1",
                           ""}) {
    CHECK(!dateKey('"' + std::string(text) + '"'));
  }
  CHECK(!dateKey("20240101") && !dateKey(""));
});

const Case columnsForgotten("values", "values are kept once a record, and the oldest field is forgotten", [](Random&) {
  FieldValues values(nobody());
  const auto always = [](uint32_t) { return true; };
  const std::vector<std::string> year{"year"};
  const KeyRange all{std::string(numberKeys), std::string(stringKeys), false, true};
  const auto found = [&] {
    Bitmap records(3);
    const auto column = values.complete("year", 3, always);
    if (column != nullptr) column->addTo(records, Compared::values, all);
    return std::pair(column != nullptr, int(records.test(0)) + records.test(1) + records.test(2));
  };
  CHECK(values.lacking(year, 3, always).size() == 3 && !found().first);
  const std::vector<uint32_t> first{0, 2}, second{1};
  const std::vector<std::string> objects{R"({"year":1,"year":"x"})", R"({"ye\u0061r":7})"}, others{R"({"other":1})"};
  values.add(year, first, objects);
  CHECK(values.lacking(year, 3, always) == second && !found().first);
  values.add(year, second, others);
  // If a name occurs twice, the last one counts. Here it is no number.
  CHECK(values.lacking(year, 3, always).empty() && found() == std::pair(true, 1));
  for (size_t n = 0; n < FieldValues::columnsMax; ++n) {
    const std::vector<std::string> field{"f" + std::to_string(n)};
    values.add(field, second, others);
  }
  CHECK(!found().first && values.lacking(year, 3, always).size() == 3);
});

}  // namespace
}  // namespace maxsimd::test
