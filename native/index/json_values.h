// Reads the top-level members of a JSON object and makes keys that order its values. Ranges compare these keys.
//
// An object is compact JSON that was checked when it was stored. Only bounds are checked here, so that other bytes do
// no harm. The key of a number is its exact decimal value. The key of a string is its Unicode text in order of code
// points. Comparing keys as bytes compares values; numbers come before strings. Other values have no key and lie in no
// range: literals, arrays, objects, numbers beyond 10^30000 or within 10^-30000 of zero, and values whose keys exceed
// `valueKeyBytesMax`. The key of a date is its instant. The items of an array have keys like values, and literals have
// keys there, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maxsimd {

inline constexpr size_t valueKeyBytesMax = 257;

/// Keys of numbers lie in [numberKeys, stringKeys), keys of strings in [stringKeys, behindKeys).
inline constexpr std::string_view numberKeys = "\x10", stringKeys = "\x20", behindKeys = "\x21";

/// Which keys of a field's value a range compares.
enum class Compared : uint8_t { values, dates, items, presence };

struct JsonMember {
  /// The tokens as they stand in the text.
  std::string_view name, value;
};

/// The members in order. A name may occur more than once.
std::vector<JsonMember> membersOf(std::string_view object);
/// The text of a JSON string in UTF-8. A lone surrogate gets the three bytes that its code point would have.
std::string stringOf(std::string_view token);
std::optional<std::string> valueKey(std::string_view token);
/// The key of a date (the forms: src/index/terms/instant.ts).
std::optional<std::string> dateKey(std::string_view token);
/// The key of an item of an array: that of a value, or one for each literal.
std::optional<std::string> itemKey(std::string_view token);
/// All keys of a field's value, distinct and ascending.
std::vector<std::string> keysOf(Compared compared, std::string_view token);

}  // namespace maxsimd
