// Top-level members of a JSON object, and keys that order its values: what ranges compare.
//
// An object is compact JSON text that was checked when it came in; nothing is checked here but bounds, so that other bytes
// do no harm. A key of a number is its exact decimal value, a key of a string its Unicode text in order of code points.
// Comparing keys as bytes compares values; numbers come before strings. All else has no key and lies in no range: literals,
// arrays, objects, numbers beyond 10^30000 or within 10^-30000 of zero, and values whose keys would be longer than
// `valueKeyBytesMax`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maxsimd {

inline constexpr size_t valueKeyBytesMax = 257;

/// Keys of numbers lie in [numberKeys, stringKeys), keys of strings in [stringKeys, behindKeys).
inline constexpr std::string_view numberKeys = "\x10", stringKeys = "\x20", behindKeys = "\x21";

struct JsonMember {
  /// As they stand in the text.
  std::string_view name, value;
};

/// In order; a name may come again.
std::vector<JsonMember> membersOf(std::string_view object);
/// The text of a JSON string in UTF-8; a lone surrogate has the three bytes that its code point would have.
std::string stringOf(std::string_view token);
std::optional<std::string> valueKey(std::string_view token);

}  // namespace maxsimd
