// The values of the fields of a JSON object, as its tokens. A field is a top-level member. A name with dots is a path, too:
// `author.name` is the member `name` of the object `author`. If the object has a top-level member of the whole name,
// that member counts.
//
// A path goes through the objects of an array, and ends in one array of all that it found in them. Items of arrays that
// it found are items of that array.
#pragma once

#include "values/json_values.h"

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace maxsimd {

class FieldTokens {
 public:
  /// `object` must outlive this. Of a name that is given twice the last value counts.
  explicit FieldTokens(std::string_view object);

  /// The value of a field; empty if there is none. Valid as long as this is.
  std::string_view of(const std::string& field);

 private:
  std::unordered_map<std::string, std::string_view> members_;
  /// Arrays that stand in no object.
  std::deque<std::string> made_;
};

/// Whether a name is a path, too.
inline bool isPath(std::string_view field) { return field.find('.') != std::string_view::npos; }
/// The value of a field whose `cutKey` this is, in canonical form: the field's own value, or an item of it.
std::optional<std::string> findToken(std::string_view object, const std::string& field, std::string_view key);

}  // namespace maxsimd
