#include "binding/functions.h"

#include "binding/arguments.h"
#include "binding/task.h"
#include "kernels/few_bits.h"

#include <algorithm>
#include <future>
#include <thread>
#include <vector>

namespace maxsimd {
namespace {

constexpr uint32_t dimMost = 1u << 16;

/// Rows that take so long that a thread is worth its start. Batches of a GPU have many times as many, those of a CPU
/// fewer: there other workers have the other cores.
constexpr size_t rowsOfThread = 1024;

/// Calls `work(first, count)` for all rows, on several threads when there are many.
template <typename Work>
void forRows(size_t rows, Work work) {
  const size_t parts = std::clamp<size_t>(rows / rowsOfThread, 1, std::max(1u, std::thread::hardware_concurrency()));
  const auto from = [&](size_t part) { return rows * part / parts; };
  std::vector<std::future<void>> others;
  for (size_t part = 1; part < parts; ++part) {
    others.push_back(std::async(std::launch::async, work, from(part), from(part + 1) - from(part)));
  }
  work(0, from(1));
  for (std::future<void>& other : others) other.get();
}

/// An array that the call writes.
template <typename T>
std::span<T> takeOutput(const Napi::Value& value, const std::string& name) {
  const std::span<const T> array = takeArray<T>(value, name);
  return {const_cast<T*>(array.data()), array.size()};
}

void requireLength(size_t length, size_t expected, const std::string& name) {
  if (length != expected) refuse(name, "of " + std::to_string(expected) + " elements");
}

Napi::Value rotate(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto vectors = takeOutput<float>(info[0], "vectors");
    const auto dim = uint32_t(takeInteger(info[1], "dim", 1, dimMost));
    const auto factors = takeArray<float>(info[2], "factors");
    const auto mean = info[3].IsUndefined() ? std::span<const float>() : takeArray<float>(info[3], "mean");
    requireLength(vectors.size() % dim, 0, "the rest of vectors");
    requireLength(factors.size() % dim, 0, "the rest of factors");
    if (!mean.empty()) requireLength(mean.size(), dim, "mean");
    forRows(vectors.size() / dim, [=](size_t first, size_t count) {
      rotateRows(vectors.subspan(first * dim, count * dim), dim, mean, factors);
    });
    return info.Env().Undefined();
  });
}

Napi::Value quantize(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto vectors = takeArray<float>(info[0], "vectors");
    const auto dim = uint32_t(takeInteger(info[1], "dim", 1, dimMost));
    const RowShape shape(dim, uint32_t(takeInteger(info[2], "rowBits", 1, 4)));
    if (!isRowBits(shape.bits)) refuse("rowBits", "1, 2 or 4");
    const auto stored = takeOutput<int8_t>(info[3], "stored");
    const auto scales = takeOutput<float>(info[4], "scales");
    requireLength(vectors.size(), scales.size() * shape.dim, "vectors");
    requireLength(stored.size(), scales.size() * shape.bytes(), "stored");
    forRows(scales.size(), [=](size_t first, size_t count) {
      quantizeRows(vectors.subspan(first * shape.dim, count * shape.dim), shape,
                   stored.subspan(first * shape.bytes(), count * shape.bytes()), scales.subspan(first, count));
    });
    return info.Env().Undefined();
  });
}

}  // namespace

void defineRowFunctions(Napi::Env env, Napi::Object exports) {
  exports.Set("rotateRows", Napi::Function::New(env, rotate, "rotateRows"));
  exports.Set("quantizeRows", Napi::Function::New(env, quantize, "quantizeRows"));
}

}  // namespace maxsimd
