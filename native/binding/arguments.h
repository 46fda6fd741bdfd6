// Guards: each function returns a checked C++ value for a JavaScript one, or throws `invalid_argument` with the
// argument's name.
#pragma once

#include "files/error.h"

#include <napi.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>

namespace maxsimd {

inline constexpr double integerMax = 9007199254740991.0;  // Number.MAX_SAFE_INTEGER

[[noreturn]] inline void refuse(const std::string& name, const std::string& rule) {
  throw Error(ErrorCode::invalidArgument, name + " must be " + rule);
}

inline Napi::Object takeObject(const Napi::Value& value, const std::string& name) {
  if (!value.IsObject() || value.IsFunction() || value.IsArray() || value.IsTypedArray()) refuse(name, "an object");
  return value.As<Napi::Object>();
}

/// All properties are read before any is looked at. Reading one may run JavaScript, which may detach the memory of
/// arrays or close a handle. Code that needs an open handle checks it after this call.
template <typename... Names>
std::array<Napi::Value, sizeof...(Names)> properties(const Napi::Object& object, Names... names) {
  return {object.Get(names)...};
}

inline uint64_t checkInteger(double number, const std::string& name, double least, double most) {
  if (!(number >= least && number <= most) || number != std::floor(number)) {
    refuse(name, "an integer from " + std::to_string(int64_t(least)) + " to " + std::to_string(int64_t(most)));
  }
  return uint64_t(number);
}

inline uint64_t takeInteger(const Napi::Value& value, const std::string& name, double least = 0,
                            double most = integerMax) {
  if (!value.IsNumber()) refuse(name, "a number");
  return checkInteger(value.As<Napi::Number>().DoubleValue(), name, least, most);
}

inline double takePositive(const Napi::Value& value, const std::string& name) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : NAN;
  if (!std::isfinite(number) || number <= 0) refuse(name, "a finite number above 0");
  return number;
}

inline bool takeBoolean(const Napi::Value& value, const std::string& name) {
  if (!value.IsBoolean()) refuse(name, "a boolean");
  return value.As<Napi::Boolean>().Value();
}

/// False if it is absent.
inline bool takeFlag(const Napi::Value& value, const std::string& name) {
  return !value.IsUndefined() && takeBoolean(value, name);
}

inline std::string takeString(const Napi::Value& value, const std::string& name) {
  if (!value.IsString()) refuse(name, "a string");
  std::string text = value.As<Napi::String>().Utf8Value();
  if (text.empty() || text.find('\0') != std::string::npos) refuse(name, "a non-empty string without NUL");
  return text;
}

template <typename T>
struct TypedArrayTraits;
template <>
struct TypedArrayTraits<int8_t> {
  static constexpr napi_typedarray_type type = napi_int8_array;
  static constexpr const char* name = "an Int8Array";
};
template <>
struct TypedArrayTraits<uint8_t> {
  static constexpr napi_typedarray_type type = napi_uint8_array;
  static constexpr const char* name = "a Uint8Array";
};
template <>
struct TypedArrayTraits<uint16_t> {
  static constexpr napi_typedarray_type type = napi_uint16_array;
  static constexpr const char* name = "a Uint16Array";
};
template <>
struct TypedArrayTraits<uint32_t> {
  static constexpr napi_typedarray_type type = napi_uint32_array;
  static constexpr const char* name = "a Uint32Array";
};
template <>
struct TypedArrayTraits<float> {
  static constexpr napi_typedarray_type type = napi_float32_array;
  static constexpr const char* name = "a Float32Array";
};
template <>
struct TypedArrayTraits<double> {
  static constexpr napi_typedarray_type type = napi_float64_array;
  static constexpr const char* name = "a Float64Array";
};

/// The elements of a typed array. They are valid until JavaScript runs again: copy what another thread needs.
template <typename T>
std::span<const T> takeArray(const Napi::Value& value, const std::string& name) {
  if (!value.IsTypedArray()) refuse(name, TypedArrayTraits<T>::name);
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  if (napi_get_typedarray_info(value.Env(), value, &type, &length, &data, nullptr, nullptr) != napi_ok ||
      type != TypedArrayTraits<T>::type) {
    refuse(name, TypedArrayTraits<T>::name);
  }
  return {static_cast<const T*>(data), data == nullptr ? 0 : length};
}

inline void requireFinite(std::span<const float> values, const std::string& name) {
  for (const float value : values) {
    if (!std::isfinite(value)) refuse(name, "finite throughout");
  }
}

template <typename T, typename Array>
Array makeArray(Napi::Env env, const T* from, size_t count) {
  Array array = Array::New(env, count);
  std::copy_n(from, count, array.Data());
  return array;
}

}  // namespace maxsimd
