#include "binding/arguments.h"
#include "binding/engine_object.h"
#include "binding/index_arguments.h"
#include "binding/index_object.h"
#include "binding/task.h"
#include "search/search.h"

#include <utility>

namespace maxsimd {

/// A search and what its slices took together. Slices run one after the other.
struct SlicedSearch {
  SlicedSearch(std::shared_ptr<Index> searched, Pool& runsOn, IndexSearch request)
      : index(std::move(searched)),
        pool(runsOn),
        components(request.components),
        matches(request.match.has_value()),
        search(std::in_place, *index, pool, std::move(request)) {}

  /// Works for about so long. True = the search has ended.
  bool run(Clock::time_point asked, Clock::duration slice) {
    const auto start = Clock::now();
    const double cpuBefore = threadCpuMs();
    queueMs += millisecondsBetween(asked, start);
    const bool isLast = slice == Clock::duration::max();
    const bool hasEnded = search->run(isLast ? Clock::time_point::max() : start + slice);
    cpuMs += threadCpuMs() - cpuBefore;
    if (hasEnded) outcome = std::move(search->outcome());
    return hasEnded;
  }

  const std::shared_ptr<Index> index;
  Pool& pool;
  const bool components;
  const bool matches;
  /// Empty once it has ended, failed or been given up. It may hold the last reference to a segment.
  std::optional<Search> search;
  SearchOutcome outcome;
  double queueMs = 0;
  double cpuMs = 0;
  std::atomic<bool> isRunning{false};
  std::atomic<bool> isGivenUp{false};
};

namespace {

constexpr double sliceMsMax = 1e9;

Napi::Value searchResult(Napi::Env env, SlicedSearch& sliced) {
  const SearchOutcome& outcome = sliced.outcome;
  const bool components = sliced.components;
  const size_t count = outcome.results.size();
  auto versionIds = Napi::Float64Array::New(env, count);
  auto chunkIndexes = Napi::Uint32Array::New(env, count);
  auto scores = Napi::Float32Array::New(env, count);
  auto chunkRanges = Napi::Uint32Array::New(env, 2 * count);
  auto candidateScores = Napi::Float32Array::New(env, count);
  auto candidateRanks = Napi::Uint32Array::New(env, count);
  for (size_t i = 0; i < count; ++i) {
    const SearchOutcome::Result& result = outcome.results[i];
    versionIds[i] = double(result.versionId);
    chunkIndexes[i] = result.chunkIndex;
    scores[i] = result.score;
    chunkRanges[2 * i] = result.rangeStart;
    chunkRanges[2 * i + 1] = result.rangeEnd;
    candidateScores[i] = result.candidateScore;
    candidateRanks[i] = result.candidateRank;
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("versionIds", versionIds);
  object.Set("chunkIndexes", chunkIndexes);
  object.Set("scores", scores);
  object.Set("chunkRanges", chunkRanges);
  object.Set("candidateCount", outcome.candidateCount);
  object.Set("plan", planName(outcome.plan));
  object.Set("codesLost", Napi::Boolean::New(env, outcome.codesLost));
  if (sliced.matches) {
    auto maxsims = Napi::Float32Array::New(env, count);
    auto matched = Napi::Uint32Array::New(env, 2 * count);
    for (size_t i = 0; i < count; ++i) {
      maxsims[i] = outcome.results[i].maxsim;
      matched[2 * i] = uint32_t(outcome.results[i].spans);
      matched[2 * i + 1] = uint32_t(outcome.results[i].spans >> 32);
    }
    object.Set("maxsims", maxsims);
    object.Set("matched", matched);
  }
  if (components) {
    if (outcome.preselected) {
      object.Set("candidateScores", candidateScores);
      object.Set("candidateRanks", candidateRanks);
    }
    object.Set("similarities",
               makeArray<float, Napi::Float32Array>(env, outcome.similarities.data(), outcome.similarities.size()));
    object.Set("documentTokens", makeArray<uint32_t, Napi::Uint32Array>(env, outcome.documentTokens.data(),
                                                                        outcome.documentTokens.size()));
    auto rowPlaces = Napi::Array::New(env, count);
    for (uint32_t i = 0; i < count; ++i) {
      const std::vector<uint8_t>& places = outcome.rowPlaces[i];
      rowPlaces[i] = makeArray<uint8_t, Napi::Uint8Array>(env, places.data(), places.size());
    }
    object.Set("rowPlaces", rowPlaces);
  }
  Napi::Object timings = Napi::Object::New(env);
  timings.Set("queueMs", sliced.queueMs);
  timings.Set("filterMs", outcome.filterMs);
  timings.Set("candidatesMs", outcome.candidatesMs);
  timings.Set("exactMs", outcome.exactMs);
  timings.Set("cpuMs", sliced.cpuMs);
  object.Set("timings", timings);
  return object;
}

/// Resolves to the result, or to `undefined` if the search has not ended.
Napi::Value startSlice(Napi::Env env, AsyncHub& hub, std::shared_ptr<SlicedSearch> sliced, Clock::duration slice) {
  if (sliced->isRunning.exchange(true)) throw Error(ErrorCode::invalidArgument, "the search is running");
  Pool& pool = sliced->pool;
  auto execute = [sliced, slice, asked = Clock::now()] {
    // A search ends on this thread, because unmapping gigabytes takes long.
    const auto leave = [&sliced](bool hasEnded) {
      if (hasEnded || sliced->isGivenUp) sliced->search.reset();
      sliced->isRunning = false;
    };
    try {
      const bool hasEnded = sliced->run(asked, slice);
      leave(hasEnded);
      return hasEnded;
    } catch (...) {
      leave(true);
      throw;
    }
  };
  auto result = [sliced](Napi::Env env, bool& hasEnded) {
    return hasEnded ? searchResult(env, *sliced) : env.Undefined();
  };
  return hub.start(env, pool, makeTask(std::move(execute), std::move(result)));
}

}  // namespace

std::shared_ptr<SlicedSearch> IndexObject::takeSearch(const Napi::Value& value) {
  IndexSearch request = maxsimd::takeSearch(value, requireOpen().options().shape.dim);
  const bool background = takeFlag(value.As<Napi::Object>().Get("background"), "search.background");
  requireOpen();
  Engine& engine = hub_->engine();
  request.deadline.stopping = &engine.stopping;
  Pool& pool = background ? engine.background() : engine.compute();
  return std::make_shared<SlicedSearch>(index_, pool, std::move(request));
}

Napi::Value IndexObject::search(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    auto sliced = takeSearch(info[0]);
    return startSlice(info.Env(), *hub_, std::move(sliced), Clock::duration::max());
  });
}

Napi::Value IndexObject::beginSearch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    auto sliced = takeSearch(info[0]);
    const Napi::Object object = env.GetInstanceData<EnvironmentData>()->searchConstructor.New({});
    SearchObject* self = SearchObject::Unwrap(object);
    self->hub_ = hub_;
    self->index_ = Napi::Persistent(info.This().As<Napi::Object>());
    self->sliced_ = std::move(sliced);
    return object;
  });
}

Napi::Function SearchObject::define(Napi::Env env) {
  return DefineClass(env, "Search",
                     {
                         InstanceMethod<&SearchObject::next>("next"),
                         InstanceMethod<&SearchObject::close>("close"),
                     });
}

SearchObject::SearchObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<SearchObject>(info) {}

Napi::Value SearchObject::next(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const double sliceMs = std::min(takePositive(info[0], "sliceMs"), sliceMsMax);
    if (sliced_ == nullptr) throw Error(ErrorCode::closed, "the search is closed");
    IndexObject::Unwrap(index_.Value())->requireOpen();
    if (!sliced_->isRunning && !sliced_->search) throw Error(ErrorCode::closed, "the search has ended");
    return startSlice(info.Env(), *hub_, sliced_, std::chrono::microseconds(int64_t(sliceMs * 1000)));
  });
}

Napi::Value SearchObject::close(const Napi::CallbackInfo& info) {
  if (sliced_ != nullptr) {
    sliced_->isGivenUp = true;
    const bool isLeft = !sliced_->isRunning && sliced_->search.has_value();
    // Unmapping gigabytes takes long, so another thread drops what is left.
    if (isLeft && hub_->open()) hub_->engine().files().post([sliced = sliced_] { sliced->search.reset(); });
  }
  sliced_ = nullptr;
  index_.Reset();
  return info.Env().Undefined();
}

}  // namespace maxsimd
