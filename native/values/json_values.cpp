#include "values/json_values.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

namespace maxsimd {
namespace {

constexpr char negativeNumber = 0x10, zero = 0x11, positiveNumber = 0x12, string = 0x20, other = 0x30;
/// Exponents up to `exponentMost` take two bytes in a key, others eight more.
constexpr int64_t exponentMost = 30'000, exponentBias = 32'768;
constexpr size_t powerDigitsMost = 17;
/// Deeper values stay as they are written. Stored metadata are nested less deep.
constexpr int depthMost = 64;
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

/// 0.d1d2d3... * 10^exponent, without zeros at either end. Zero has no digits.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
};

/// Nothing if the exponent is too long.
std::optional<Decimal> decimalOf(std::string_view token) {
  Decimal decimal{token.front() == '-', {}, 0};
  std::string& digits = decimal.digits;
  size_t at = decimal.negative;
  for (bool fraction = false; at < token.size() && (isDigit(token[at]) || token[at] == '.'); ++at) {
    if (token[at] == '.') {
      fraction = true;
      continue;
    }
    digits.push_back(token[at]);
    decimal.exponent += !fraction;
  }
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return Decimal{};
  decimal.exponent -= int64_t(first);
  digits = digits.substr(first, digits.find_last_not_of('0') + 1 - first);
  if (at == token.size()) return decimal;
  const bool down = token.substr(at + 1, 1) == "-";
  std::string_view power = token.substr(std::min(token.find_first_of("123456789", at), token.size()));
  if (power.size() > powerDigitsMost) return std::nullopt;
  int64_t value = 0;
  for (const char digit : power) {
    if (isDigit(digit)) value = value * 10 + (digit - '0');
  }
  decimal.exponent += down ? -value : value;
  return decimal;
}

/// Layout of a number's key: the sign, the exponent, then the digits, two a byte. For negative numbers all but the sign
/// is complemented and a final byte makes longer numbers come first.
std::string numberKey(Decimal decimal) {
  std::string& digits = decimal.digits;
  if (digits.empty()) return std::string(1, zero);
  std::string key;
  const auto append = [&key](uint64_t number, int bytes) {
    for (int b = bytes - 1; b >= 0; --b) key.push_back(char(number >> 8 * b & 0xff));
  };
  const int64_t exponent = decimal.exponent;
  if (std::abs(exponent) <= exponentMost) {
    append(uint64_t(exponent + exponentBias), 2);
  } else {
    append(exponent < 0 ? 0 : 0xffff, 2);
    append(uint64_t(exponent) ^ uint64_t(1) << 63, 8);
  }
  if (digits.size() % 2 == 1) digits.push_back('0' - 1);
  for (size_t d = 0; d < digits.size(); d += 2) {
    key.push_back(char((digits[d] - '0' + 1) << 4 | (digits[d + 1] - '0' + 1)));
  }
  if (decimal.negative) {
    for (char& byte : key) byte = char(~byte);
    key.push_back('\xff');
  }
  return (decimal.negative ? negativeNumber : positiveNumber) + key;
}

Decimal decimalOfKey(std::string_view key) {
  if (key.front() == zero) return {};
  Decimal decimal{key.front() == negativeNumber, {}, 0};
  std::string bytes(key.substr(1));
  if (decimal.negative && !bytes.empty()) {
    bytes.pop_back();
    for (char& byte : bytes) byte = char(~byte);
  }
  size_t at = 0;
  const auto take = [&](size_t count) {
    uint64_t number = 0;
    for (; count > 0 && at < bytes.size(); --count) number = number << 8 | uint8_t(bytes[at++]);
    return number;
  };
  const uint64_t biased = take(2);
  decimal.exponent =
      biased == 0 || biased == 0xffff ? int64_t(take(8) ^ uint64_t(1) << 63) : int64_t(biased) - exponentBias;
  for (; at < bytes.size(); ++at) {
    const auto pair = uint8_t(bytes[at]);
    decimal.digits.push_back(char('0' - 1 + (pair >> 4)));
    if ((pair & 0xf) != 0) decimal.digits.push_back(char('0' - 1 + (pair & 0xf)));
  }
  return decimal;
}

/// Its digits as an integer, and a power of ten (src/index/terms/canonical-json.ts).
std::string textOf(const Decimal& decimal) {
  if (decimal.digits.empty()) return "0";
  // A file that was tampered with may hold any exponent.
  const auto power = int64_t(uint64_t(decimal.exponent) - decimal.digits.size());
  return (decimal.negative ? "-" : "") + decimal.digits + (power == 0 ? "" : "e" + std::to_string(power));
}

/// The code point that begins at `at`, of UTF-8 that may hold lone surrogates; moves `at` behind it.
uint32_t pointAt(std::string_view text, size_t& at) {
  const auto lead = uint8_t(text[at++]);
  const int rest = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  uint32_t point = rest == 0 ? lead : lead & (0x3f >> rest);
  for (int r = 0; r < rest && at < text.size(); ++r) point = point << 6 | (uint8_t(text[at++]) & 0x3f);
  return point;
}

/// As `JSON.stringify` writes it (ECMA-262, QuoteJSONString).
void appendQuoted(std::string& token, std::string_view text) {
  token.push_back('"');
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t point = pointAt(text, at);
    constexpr std::string_view plain = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    const size_t escape = point < 0x80 ? plain.find(char(point)) : std::string_view::npos;
    if (escape != std::string_view::npos) {
      token.push_back('\\');
      token.push_back(letters[escape]);
    } else if (point < 0x20 || (point >= 0xd800 && point <= 0xdfff)) {
      char unit[8];
      std::snprintf(unit, sizeof unit, "\\u%04x", point);
      token += unit;
    } else {
      token += text.substr(begin, at - begin);
    }
  }
  token.push_back('"');
}

std::string canonical(std::string_view token, int depth);

std::string joined(const std::vector<std::string>& parts, char open, char close) {
  std::string text(1, open);
  for (const std::string& part : parts) {
    if (text.size() > 1) text.push_back(',');
    text += part;
  }
  return text + close;
}

/// In canonical form: the order of members does not count, and of a name that is given twice the last value counts.
std::string canonicalObject(std::string_view token, int depth) {
  std::map<std::string, std::string> members;
  for (const JsonMember& member : membersOf(token)) {
    members.insert_or_assign(canonical(member.name, depth), canonical(member.value, depth));
  }
  std::vector<std::string> parts;
  for (const auto& [name, value] : members) parts.push_back(name + ':' + value);
  return joined(parts, '{', '}');
}

std::string canonical(std::string_view token, int depth) {
  if (token.empty() || depth > depthMost) return std::string(token);
  std::string text;
  switch (token.front()) {
    case '"': appendQuoted(text, stringOf(token)); return text;
    case '{': return canonicalObject(token, depth + 1);
    case '[': {
      std::vector<std::string> items;
      for (const std::string_view item : itemsOf(token)) items.push_back(canonical(item, depth + 1));
      return joined(items, '[', ']');
    }
    case 't':
    case 'f':
    case 'n': return std::string(token);
    default: {
      const auto decimal = decimalOf(token);
      return decimal ? textOf(*decimal) : std::string(token);
    }
  }
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

std::string valueKey(std::string_view token) {
  if (!token.empty() && token.front() == '"') return string + stringOf(token);
  if (!token.empty() && (token.front() == '-' || isDigit(token.front()))) {
    if (const auto decimal = decimalOf(token)) return numberKey(*decimal);
  }
  return other + canonical(token, 0);
}

std::string cutKey(std::string key) {
  if (!isCut(key)) return key;
  const auto append = [](std::string& bytes, uint64_t number, size_t count) {
    for (size_t b = count; b > 0; --b) bytes.push_back(char(number >> 8 * (b - 1) & 0xff));
  };
  std::string cut = key.substr(0, valueKeyBytesMax);
  append(cut, hashOf(key), sizeof(uint64_t));
  append(cut, key.size(), sizeof(uint32_t));
  return cut;
}

uint64_t hashOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ uint8_t(byte)) * 0x100000001b3;
  return hash;
}

size_t fullKeyBytes(std::string_view key) {
  if (!isCut(key)) return key.size();
  size_t bytes = 0;
  for (const char byte : key.substr(key.size() - sizeof(uint32_t))) bytes = bytes << 8 | uint8_t(byte);
  return bytes;
}

std::string tokenOfKey(std::string_view key) {
  if (key.front() == other) return std::string(key.substr(1));
  if (key.front() != string) return textOf(decimalOfKey(key));
  std::string token;
  appendQuoted(token, key.substr(1));
  return token;
}

std::optional<std::string> dateKey(std::string_view token) {
  if (token.empty() || token.front() != '"') return std::nullopt;
  return dateKeyOfText(stringOf(token));
}

std::optional<std::string> dateKeyOfText(std::string_view text) {
  const auto instant = readInstant(text);
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

}  // namespace maxsimd
