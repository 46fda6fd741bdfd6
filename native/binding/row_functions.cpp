#include "binding/functions.h"

#include "binding/arguments.h"
#include "binding/task.h"
#include "kernels/encoding/pooling.h"
#include "kernels/encoding/quantized_rows.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace maxsimd {
namespace {

constexpr uint32_t dimMost = 1u << 16;
constexpr uint32_t poolFactorMost = 64;

/// How the document vectors of a model become stored rows.
struct RowRules {
  RowShape shape;
  uint32_t poolFactor;
  /// The mean of the vectors before they are rotated, and the factors of the rotation; empty = none.
  std::vector<float> mean, factors;
  std::optional<RowMoment> moment;
};

/// The stored rows of some texts.
struct DocumentRows {
  std::vector<int8_t> stored;
  std::vector<float> scales;
  /// For each row, the number of the vector of its text that represents it. For each vector, the row of its text that it is
  /// part of. Empty where vectors are not pooled.
  std::vector<uint32_t> representatives, pooledOf;
  /// Milliseconds.
  double took = 0;
};

/// Rows that take so long that a thread is worth its start. Batches of a GPU have many times as many, those of a CPU
/// fewer: there other workers have the other cores.
constexpr size_t rowsOfThread = 1024;

/// Calls `work(first, count)` for all of `items`, which have `rows` rows, on several threads when those are many.
template <typename Work>
void inParts(size_t items, size_t rows, Work work) {
  const size_t most = std::min<size_t>(items, std::max(1u, std::thread::hardware_concurrency()));
  const size_t parts = std::clamp<size_t>(rows / rowsOfThread, 1, std::max<size_t>(most, 1));
  const auto from = [&](size_t part) { return items * part / parts; };
  std::vector<std::future<void>> others;
  for (size_t part = 1; part < parts; ++part) {
    others.push_back(std::async(std::launch::async, work, from(part), from(part + 1) - from(part)));
  }
  work(0, from(1));
  for (std::future<void>& other : others) other.get();
}

/// Pools the vectors of each text.
std::vector<float> pool(std::span<const float> vectors, std::span<const uint32_t> counts, const RowRules& rules,
                        DocumentRows& rows) {
  const size_t dim = rules.shape.dim;
  std::vector<size_t> firsts{0}, pooledFirsts{0};
  for (const uint32_t count : counts) {
    firsts.push_back(firsts.back() + count);
    pooledFirsts.push_back(pooledFirsts.back() + pooledRows(count, rules.poolFactor));
  }
  std::vector<float> pooled(pooledFirsts.back() * dim);
  rows.representatives.resize(pooledFirsts.back());
  rows.pooledOf.resize(firsts.back());
  inParts(counts.size(), firsts.back(), [&](size_t first, size_t count) {
    for (size_t text = first; text < first + count; ++text) {
      const size_t to = pooledFirsts[text], length = pooledFirsts[text + 1] - to;
      poolRows(vectors.subspan(firsts[text] * dim, counts[text] * dim), rules.shape.dim, rules.poolFactor,
               {std::span(pooled).subspan(to * dim, length * dim), std::span(rows.representatives).subspan(to, length),
                std::span(rows.pooledOf).subspan(firsts[text], counts[text])});
    }
  });
  return pooled;
}

/// `vectors` are overwritten.
DocumentRows makeRows(std::span<float> vectors, std::span<const uint32_t> counts, const RowRules& rules) {
  const auto start = std::chrono::steady_clock::now();
  const RowShape shape = rules.shape;
  DocumentRows rows;
  std::vector<float> pooled;
  if (rules.poolFactor > 1) {
    pooled = pool(vectors, counts, rules, rows);
    vectors = pooled;
  }
  rows.scales.resize(vectors.size() / shape.dim);
  rows.stored.resize(rows.scales.size() * shape.bytes());
  inParts(rows.scales.size(), rows.scales.size(), [&](size_t first, size_t count) {
    const auto some = vectors.subspan(first * shape.dim, count * shape.dim);
    rotateRows(some, shape.dim, rules.mean, rules.factors);
    quantizeRows(some, shape, rules.moment ? &*rules.moment : nullptr,
                 std::span(rows.stored).subspan(first * shape.bytes(), count * shape.bytes()),
                 std::span(rows.scales).subspan(first, count));
  });
  rows.took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return rows;
}

Napi::Value resultOf(Napi::Env env, const DocumentRows& rows) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("stored", makeArray<int8_t, Napi::Int8Array>(env, rows.stored.data(), rows.stored.size()));
  object.Set("scales", makeArray<float, Napi::Float32Array>(env, rows.scales.data(), rows.scales.size()));
  for (const auto& [name, numbers] :
       {std::pair("representatives", &rows.representatives), {"pooledOf", &rows.pooledOf}})
    object.Set(name, makeArray<uint32_t, Napi::Uint32Array>(env, numbers->data(), numbers->size()));
  object.Set("tookMs", rows.took);
  return object;
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
    requireLength(vectors.size() % dim, 0, "the rest of vectors");
    requireLength(factors.size() % dim, 0, "the rest of factors");
    rotateRows(vectors, dim, {}, factors);
    return info.Env().Undefined();
  });
}

/// Nothing where the array is absent.
template <typename T>
std::span<const T> takeOptional(const Napi::Value& value, const std::string& name) {
  return value.IsUndefined() ? std::span<const T>() : takeArray<T>(value, name);
}

Napi::Value rowRules(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto [dim, rowBits, poolFactor, givenMean, givenFactors, givenMoment] =
        properties(takeObject(info[0], "rules"), "dim", "rowBits", "poolFactor", "centring", "factors", "moment");
    const RowShape shape(uint32_t(takeInteger(dim, "dim", 1, dimMost)),
                         uint32_t(takeInteger(rowBits, "rowBits", 1, 8)));
    if (!isRowBits(shape.bits)) refuse("rowBits", "1, 2, 4 or 8");
    const auto mean = takeOptional<float>(givenMean, "centring"),
               factors = takeOptional<float>(givenFactors, "factors");
    const auto moment = takeOptional<uint16_t>(givenMoment, "moment");
    if (!mean.empty()) requireLength(mean.size(), shape.dim, "centring");
    requireLength(factors.size() % shape.dim, 0, "the rest of factors");
    auto* rules = new RowRules{shape,
                               uint32_t(takeInteger(poolFactor, "poolFactor", 1, poolFactorMost)),
                               {mean.begin(), mean.end()},
                               {factors.begin(), factors.end()},
                               std::nullopt};
    auto external = Napi::External<RowRules>::New(info.Env(), rules, [](Napi::Env, RowRules* held) { delete held; });
    if (!moment.empty()) {
      requireLength(moment.size(), size_t(shape.dim) * shape.dim, "moment");
      if (shape.bits == 8) refuse("moment", "absent for rows of 8 bits");
      rules->moment.emplace(moment, shape.dim);
    }
    return Napi::Value(external);
  });
}

/// The arguments of the functions that make rows.
struct Given {
  const RowRules& rules;
  std::span<float> vectors;
  std::span<const uint32_t> counts;
};

Given takeGiven(const Napi::Value& givenRules, const Napi::Value& givenVectors, const Napi::Value& givenCounts) {
  if (!givenRules.IsExternal()) refuse("rules", "what rowRules returned");
  const RowRules& rules = *givenRules.As<Napi::External<RowRules>>().Data();
  const auto vectors = takeOutput<float>(givenVectors, "vectors");
  const auto counts = takeArray<uint32_t>(givenCounts, "counts");
  uint64_t sum = 0;
  for (const uint32_t count : counts) sum += count;
  requireLength(vectors.size(), sum * rules.shape.dim, "vectors");
  return {rules, vectors, counts};
}

Napi::Value documentRows(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Given given = takeGiven(info[0], info[1], info[2]);
    return resultOf(info.Env(), makeRows(given.vectors, given.counts, given.rules));
  });
}

/// `documentRows` on another thread. It works in the memory of its arguments, which the caller leaves alone meanwhile.
class RowsLater final : public Napi::AsyncWorker {
 public:
  /// `read`: the values that the work reads, which stay in memory until it has ended.
  RowsLater(Napi::Env env, const Given& given, const Napi::Array& read)
      : Napi::AsyncWorker(env),
        given_(given),
        read_(Napi::Persistent(read.As<Napi::Object>())),
        deferred_(Napi::Promise::Deferred::New(env)) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

 protected:
  void Execute() override { rows_ = makeRows(given_.vectors, given_.counts, given_.rules); }
  void OnOK() override { deferred_.Resolve(resultOf(Env(), rows_)); }
  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  Given given_;
  Napi::ObjectReference read_;
  Napi::Promise::Deferred deferred_;
  DocumentRows rows_;
};

Napi::Value documentRowsLater(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Given given = takeGiven(info[0], info[1], info[2]);
    Napi::Array read = Napi::Array::New(info.Env());
    for (size_t i = 0; i < info.Length(); ++i) read.Set(uint32_t(i), info[i]);
    auto* const worker = new RowsLater(info.Env(), given, read);
    const Napi::Promise promise = worker->promise();
    worker->Queue();  // it deletes itself
    return Napi::Value(promise);
  });
}

}  // namespace

void defineRowFunctions(Napi::Env env, Napi::Object exports) {
  exports.Set("rotateRows", Napi::Function::New(env, rotate, "rotateRows"));
  exports.Set("rowRules", Napi::Function::New(env, rowRules, "rowRules"));
  exports.Set("documentRows", Napi::Function::New(env, documentRows, "documentRows"));
  exports.Set("documentRowsLater", Napi::Function::New(env, documentRowsLater, "documentRowsLater"));
}

}  // namespace maxsimd
