#include "index/json_values.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace maxsimd {
namespace {

constexpr char negativeNumber = 0x10, zero = 0x11, positiveNumber = 0x12, string = 0x20;
constexpr int64_t exponentMost = 30'000, exponentBias = 32'768;
/// Larger than every exponent that has a key, so longer ones need not be counted.
constexpr int64_t powerMost = 1'000'000'000;
constexpr int64_t daySeconds = 86'400;

bool isDigit(char character) { return character >= '0' && character <= '9'; }

/// The place after the string that begins at `at`.
size_t stringEnd(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
  return std::min(at + 1, text.size());
}

/// The place of the comma or bracket after the value that begins at `at`.
size_t valueEnd(std::string_view text, size_t at) {
  for (size_t depth = 0; at < text.size();) {
    const char character = text[at];
    if (depth == 0 && (character == ',' || character == '}' || character == ']')) break;
    depth += character == '{' || character == '[';
    depth -= character == '}' || character == ']';
    at = character == '"' ? stringEnd(text, at) : at + 1;
  }
  return at;
}

/// The items of an array; none of another value.
std::vector<std::string_view> itemsOf(std::string_view token) {
  std::vector<std::string_view> items;
  if (token.empty() || token.front() != '[') return items;
  for (size_t at = 1; at < token.size() && token[at] != ']';) {
    const size_t end = valueEnd(token, at);
    items.push_back(token.substr(at, end - at));
    if (end >= token.size() || token[end] != ',') break;
    at = end + 1;
  }
  return items;
}

uint32_t hexadecimal(std::string_view digits) {
  return uint32_t(std::strtoul(std::string(digits).c_str(), nullptr, 16));
}

void appendUtf8(std::string& text, uint32_t point) {
  const auto rest = [&](int shift) { text.push_back(char(0x80 | (point >> shift & 0x3f))); };
  if (point < 0x80) {
    text.push_back(char(point));
  } else if (point < 0x800) {
    text.push_back(char(0xc0 | point >> 6));
    rest(0);
  } else if (point < 0x10000) {
    text.push_back(char(0xe0 | point >> 12));
    rest(6);
    rest(0);
  } else {
    text.push_back(char(0xf0 | point >> 18));
    rest(12);
    rest(6);
    rest(0);
  }
}

/// The code point of the \u escape at `at`, or of a pair of them. Moves `at` to the last character of the escape.
uint32_t escapedPoint(std::string_view text, size_t& at) {
  const auto unitAt = [&](size_t place) { return hexadecimal(text.substr(std::min(place + 2, text.size()), 4)); };
  const uint32_t unit = unitAt(at);
  at += 5;
  if (unit < 0xd800 || unit > 0xdbff || text.substr(std::min(at + 1, text.size()), 2) != "\\u") return unit;
  const uint32_t low = unitAt(at + 1);
  if (low < 0xdc00 || low > 0xdfff) return unit;
  at += 6;
  return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

char unescaped(char letter) {
  switch (letter) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return letter;
  }
}

/// Layout of a number's key: the sign, the exponent of 0.d1d2d3..., then the digits up to the last one that is not 0,
/// two a byte. For negative numbers all but the sign is complemented and a final byte makes longer numbers come first.
std::optional<std::string> numberKey(std::string_view token) {
  const bool negative = token.front() == '-';
  std::string digits;
  int64_t exponent = 0;
  size_t at = negative;
  for (bool fraction = false; at < token.size() && (isDigit(token[at]) || token[at] == '.'); ++at) {
    if (token[at] == '.') {
      fraction = true;
      continue;
    }
    digits.push_back(token[at]);
    exponent += !fraction;
  }
  if (at < token.size()) {
    const bool down = token.substr(at + 1, 1) == "-";
    int64_t power = 0;
    for (++at; at < token.size(); ++at) {
      if (isDigit(token[at])) power = std::min(power * 10 + (token[at] - '0'), powerMost);
    }
    exponent += down ? -power : power;
  }
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return std::string(1, zero);
  exponent -= int64_t(first);
  if (std::abs(exponent) > exponentMost) return std::nullopt;
  digits = digits.substr(first, digits.find_last_not_of('0') + 1 - first);
  if (digits.size() % 2 == 1) digits.push_back('0' - 1);

  const auto biased = uint32_t(exponent + exponentBias);
  std::string key{char(biased >> 8), char(biased & 0xff)};
  for (size_t d = 0; d < digits.size(); d += 2) {
    key.push_back(char((digits[d] - '0' + 1) << 4 | (digits[d + 1] - '0' + 1)));
  }
  if (negative) {
    for (char& byte : key) byte = char(~byte);
    key.push_back('\xff');
  }
  return (negative ? negativeNumber : positiveNumber) + key;
}

/// Reads a text from its beginning.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : text_(text) {}

  bool atEnd() const { return text_.empty(); }

  /// Takes the next character if it is one of these.
  std::optional<char> takeAny(std::string_view characters) {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return std::nullopt;
    const char taken = text_.front();
    text_.remove_prefix(1);
    return taken;
  }

  bool takeWord(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  /// Takes `count` digits, which make a number of at most `most`.
  std::optional<int> takeNumber(size_t count, int most) {
    int number = 0;
    for (size_t d = 0; d < count; ++d) {
      const auto digit = takeAny(digits);
      if (!digit) return std::nullopt;
      number = number * 10 + (*digit - '0');
    }
    return number <= most ? std::optional(number) : std::nullopt;
  }

  /// Takes the digits of a fraction of a second: nanoseconds.
  std::optional<int> takeFraction() {
    int nanoseconds = 0;
    size_t count = 0;
    for (; const auto digit = takeAny(digits); ++count) {
      if (count < 9) nanoseconds = nanoseconds * 10 + (*digit - '0');
    }
    if (count == 0) return std::nullopt;
    for (; count < 9; ++count) nanoseconds *= 10;
    return nanoseconds;
  }

 private:
  static constexpr std::string_view digits = "0123456789";
  std::string_view text_;
};

struct Instant {
  /// Since the epoch.
  int64_t seconds;
  int nanoseconds;
};

std::optional<std::chrono::sys_days> readDay(DateReader& reader) {
  const auto year = reader.takeNumber(4, 9999);
  if (!year || !reader.takeAny("-")) return std::nullopt;
  const auto month = reader.takeNumber(2, 12);
  if (!month || !reader.takeAny("-")) return std::nullopt;
  const auto day = reader.takeNumber(2, 31);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(unsigned(*month)),
                                         std::chrono::day(unsigned(*day))};
  return date.ok() ? std::optional(std::chrono::sys_days(date)) : std::nullopt;
}

/// Takes `T09:30`, `T09:30:00` or `T09:30:00.5`, and adds it. False if there is no time. `isLeap`: whether it has 60 seconds.
bool addTime(DateReader& reader, Instant& instant, bool& isLeap) {
  if (!reader.takeAny("Tt ")) return false;
  const auto hour = reader.takeNumber(2, 23);
  if (!hour || !reader.takeAny(":")) return false;
  const auto minute = reader.takeNumber(2, 59);
  if (!minute) return false;
  instant.seconds += *hour * 3600 + *minute * 60;
  if (!reader.takeAny(":")) return true;
  const auto second = reader.takeNumber(2, 60);
  if (!second) return false;
  instant.seconds += *second;
  isLeap = *second == 60;
  if (!reader.takeAny(".,")) return true;
  const auto fraction = reader.takeFraction();
  instant.nanoseconds = fraction.value_or(0);
  return fraction.has_value();
}

/// Takes an offset such as `Z`, `UTC`, `+01:00`, `+0100` or `+01`, with or without a space before it: seconds ahead of UTC.
/// Nothing at all is UTC.
std::optional<int> takeOffset(DateReader& reader) {
  if (reader.atEnd()) return 0;
  reader.takeAny(" ");
  if (reader.takeAny("Zz") || reader.takeWord("UTC")) return 0;
  const auto sign = reader.takeAny("+-");
  const auto hour = reader.takeNumber(2, 23);
  if (!sign || !hour) return std::nullopt;
  int seconds = *hour * 3600;
  if (!reader.atEnd()) {
    reader.takeAny(":");
    const auto minute = reader.takeNumber(2, 59);
    if (!minute) return std::nullopt;
    seconds += *minute * 60;
  }
  return *sign == '-' ? -seconds : seconds;
}

std::optional<Instant> readInstant(std::string_view text) {
  DateReader reader(text);
  const auto day = readDay(reader);
  if (!day) return std::nullopt;
  Instant instant{int64_t(day->time_since_epoch().count()) * daySeconds, 0};
  if (reader.atEnd()) return instant;
  bool isLeap = false;
  if (!addTime(reader, instant, isLeap)) return std::nullopt;
  const auto offset = takeOffset(reader);
  if (!offset || !reader.atEnd()) return std::nullopt;
  instant.seconds -= *offset;
  if (isLeap && instant.seconds % daySeconds != 0) return std::nullopt;
  return instant;
}

}  // namespace

std::vector<JsonMember> membersOf(std::string_view object) {
  std::vector<JsonMember> members;
  for (size_t at = 1; at < object.size() && object[at] != '}';) {
    const size_t nameEnd = stringEnd(object, at);
    const size_t begin = std::min(nameEnd + 1, object.size());
    const size_t end = valueEnd(object, begin);
    members.push_back({object.substr(at, nameEnd - at), object.substr(begin, end - begin)});
    at = end + 1;
    if (end < object.size() && object[end] != ',') break;
  }
  return members;
}

std::string stringOf(std::string_view token) {
  std::string text;
  for (size_t at = 1; at + 1 < token.size(); ++at) {
    if (token[at] != '\\') {
      text.push_back(token[at]);
    } else if (token[at + 1] == 'u') {
      appendUtf8(text, escapedPoint(token, at));
    } else {
      text.push_back(unescaped(token[++at]));
    }
  }
  return text;
}

std::optional<std::string> valueKey(std::string_view token) {
  std::optional<std::string> key;
  if (token.empty()) return key;
  if (token.front() == '"') key = string + stringOf(token);
  if (token.front() == '-' || isDigit(token.front())) key = numberKey(token);
  if (key && key->size() > valueKeyBytesMax) key.reset();
  return key;
}

std::optional<std::string> dateKey(std::string_view token) {
  if (token.empty() || token.front() != '"') return std::nullopt;
  const auto instant = readInstant(stringOf(token));
  if (!instant) return std::nullopt;
  std::string key;
  const auto append = [&key](uint64_t number, int bytes) {
    for (int b = bytes - 1; b >= 0; --b) key.push_back(char(number >> 8 * b & 0xff));
  };
  // The first bit is flipped, so that times before the epoch come first.
  append(uint64_t(instant->seconds) ^ uint64_t(1) << 63, 8);
  append(uint64_t(instant->nanoseconds), 4);
  return key;
}

std::optional<std::string> itemKey(std::string_view token) {
  if (token == "true" || token == "false" || token == "null") return std::string(token);
  return valueKey(token);
}

std::vector<std::string> keysOf(Compared compared, std::string_view token) {
  std::vector<std::string> keys;
  const auto add = [&keys](std::optional<std::string> key) {
    if (key) keys.push_back(std::move(*key));
  };
  switch (compared) {
    case Compared::values: add(valueKey(token)); break;
    case Compared::dates: add(dateKey(token)); break;
    case Compared::items:
      for (const std::string_view item : itemsOf(token)) add(itemKey(item));
      break;
    case Compared::presence: add(std::string()); break;
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace maxsimd
