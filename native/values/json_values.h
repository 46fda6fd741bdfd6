// Reads the members of a JSON object and makes keys that order its values. Conditions compare these keys, and
// counts of values tell values apart by them.
//
// An object is compact JSON that was checked when it was stored. Only bounds are checked here, so that other bytes do
// no harm. Two values have the same key exactly when they are equal as JSON: numbers by their exact value, strings
// however they are escaped, objects whatever the order of their members. Keys compare as bytes: numbers in order, then
// strings by their code points, then all other values by their canonical text. Numbers whose exponent has more than 17
// digits are other values, and equal to those alone that are written the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maxsimd {

/// A longer key is cut (`cutKey`).
inline constexpr size_t valueKeyBytesMax = 257;

/// Keys of numbers lie in [numberKeys, stringKeys), keys of strings in [stringKeys, otherKeys), others in
/// [otherKeys, keysEnd).
inline constexpr std::string_view numberKeys = "\x10", stringKeys = "\x20", otherKeys = "\x30", keysEnd = "\xff";

struct JsonMember {
  /// The tokens as they stand in the text.
  std::string_view name, value;
};

/// The members in order. A name may occur more than once.
std::vector<JsonMember> membersOf(std::string_view object);
/// The text of a JSON string in UTF-8. A lone surrogate gets the three bytes that its code point would have.
std::string stringOf(std::string_view token);
/// The key of any value.
std::string valueKey(std::string_view token);
/// A key of more than `valueKeyBytesMax` bytes becomes its first bytes, a hash of 64 bits and its length. So it keeps its
/// place among all keys that differ from it earlier.
std::string cutKey(std::string key);
/// The same everywhere, because files hold it: FNV-1a (Fowler, Noll and Vo) of 64 bits.
uint64_t hashOf(std::string_view bytes);
inline bool isCut(std::string_view key) { return key.size() > valueKeyBytesMax; }
/// Bytes of the key before it was cut.
size_t fullKeyBytes(std::string_view key);
/// The value as a JSON token in canonical form. The key is not empty and not cut.
std::string tokenOfKey(std::string_view key);
inline constexpr size_t dateKeyBytes = 12;
/// The key of a date (the forms: src/index/terms/instant.ts): its instant, in order.
std::optional<std::string> dateKey(std::string_view token);
/// As `dateKey`, of the text of a string.
std::optional<std::string> dateKeyOfText(std::string_view text);
/// The items of an array; none of another value.
std::vector<std::string_view> itemsOf(std::string_view token);

}  // namespace maxsimd
