#include "index/json_values.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace maxsimd {
namespace {

constexpr char negativeNumber = 0x10, zero = 0x11, positiveNumber = 0x12, string = 0x20;
constexpr int64_t exponentMost = 30'000, exponentBias = 32'768;
/// Larger than every exponent that has a key, so longer ones need not be counted.
constexpr int64_t powerMost = 1'000'000'000;

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

}  // namespace maxsimd
