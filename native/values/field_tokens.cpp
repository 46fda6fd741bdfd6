#include "values/field_tokens.h"

#include <vector>

namespace maxsimd {
namespace {

using Tokens = std::vector<std::string_view>;

bool isArray(std::string_view token) { return token.starts_with('['); }

/// Adds the member of an object; none of another value.
void addMember(Tokens& found, std::string_view token, std::string_view name) {
  if (!token.starts_with('{')) return;
  std::string_view value;
  for (const JsonMember& member : membersOf(token)) {
    if (stringOf(member.name) == name) value = member.value;
  }
  if (!value.empty()) found.push_back(value);
}

/// Adds the members of an object, or of the objects in an array.
void addMembers(Tokens& found, std::string_view token, std::string_view name) {
  if (!isArray(token)) return addMember(found, token, name);
  for (const std::string_view item : itemsOf(token)) addMember(found, item, name);
}

std::string arrayOf(const Tokens& tokens) {
  std::string array = "[";
  const auto append = [&array](std::string_view item) {
    if (array.size() > 1) array.push_back(',');
    array += item;
  };
  for (const std::string_view token : tokens) {
    if (!isArray(token)) append(token);
    else for (const std::string_view item : itemsOf(token)) append(item);
  }
  return array + ']';
}

}  // namespace

FieldTokens::FieldTokens(std::string_view object) {
  for (const JsonMember& member : membersOf(object)) members_.insert_or_assign(stringOf(member.name), member.value);
}

std::string_view FieldTokens::of(const std::string& field) {
  const auto whole = members_.find(field);
  if (whole != members_.end()) return whole->second;
  size_t end = field.find('.');
  if (end == std::string::npos) return {};
  const auto first = members_.find(field.substr(0, end));
  if (first == members_.end()) return {};
  Tokens found{first->second};
  bool inArray = false;
  while (end != std::string::npos && !found.empty()) {
    const size_t begin = end + 1;
    end = field.find('.', begin);
    const std::string_view name = std::string_view(field).substr(begin, end - begin);
    Tokens next;
    for (const std::string_view token : found) {
      inArray |= isArray(token);
      addMembers(next, token, name);
    }
    found = std::move(next);
  }
  if (found.empty()) return {};
  return inArray ? std::string_view(made_.emplace_back(arrayOf(found))) : found.front();
}

std::optional<std::string> findToken(std::string_view object, const std::string& field, std::string_view key) {
  FieldTokens tokens(object);
  const std::string_view value = tokens.of(field);
  if (value.empty()) return std::nullopt;
  for (const std::string_view token : isArray(value) ? itemsOf(value) : Tokens{value}) {
    const std::string whole = valueKey(token);
    if (cutKey(whole) == key) return tokenOfKey(whole);
  }
  return std::nullopt;
}

}  // namespace maxsimd
