#include "binding/engine_object.h"

#include "binding/arguments.h"
#include "binding/index_arguments.h"
#include "binding/index_object.h"
#include "binding/task.h"
#include "codes/codes.h"
#include "runtime/engine.h"
#include "files/memory.h"
#include "kernels/dispatch.h"
#include "kernels/half.h"
#include "store/inspection.h"
#include "store/postings.h"
#include "values/column_file.h"

#include <utility>

namespace maxsimd {
namespace {

constexpr double threadsMax = 1024;
constexpr double devicesMost = 1024;
constexpr double transientRowsMax = 1u << 24;

/// Query and chunks of `score` and `timeKernel`, checked and copied.
ScoreRequest takeScoreRequest(const Napi::Value& first, const Napi::Value& second) {
  const Napi::Object score = takeObject(first, "score");
  const Napi::Object chunks = takeObject(second, "chunks");
  const auto [dim, rowBits, components, givenOffsets, givenQuery] =
      properties(score, "dim", "rowBits", "components", "offsets", "query");
  const auto [givenRows, givenVectors, givenScales] = properties(chunks, "chunkRows", "vectors", "scales");
  ScoreRequest request;
  request.shape = takeRowShape(dim, rowBits, "score");
  request.components = takeBoolean(components, "score.components");
  const auto offsets = takeArray<float>(givenOffsets, "score.offsets");
  const auto query = takeArray<float>(givenQuery, "score.query");
  checkInteger(double(offsets.size()), "score.offsets.length", 1, queryTokensMax);
  require(query.size() == offsets.size() * request.shape.dim, "score.query must hold offsets.length x dim values");
  requireFinite(query, "score.query");
  requireFinite(offsets, "score.offsets");
  request.query.assign(query.begin(), query.end());
  request.offsets.assign(offsets.begin(), offsets.end());

  const auto chunkRows = takeArray<uint32_t>(givenRows, "chunks.chunkRows");
  const auto vectors = takeArray<int8_t>(givenVectors, "chunks.vectors");
  const auto scales = takeArray<uint16_t>(givenScales, "chunks.scales");
  uint64_t rows = 0;
  for (const uint32_t count : chunkRows) {
    require(count >= 1, "chunks.chunkRows must be at least 1 each");
    rows += count;
  }
  checkInteger(double(rows), "the sum of chunks.chunkRows", 0, transientRowsMax);
  require(vectors.size() == rows * request.shape.bytes(), "chunks.vectors must hold all rows");
  require(scales.size() == rows, "chunks.scales must hold one value per row");
  for (const uint16_t scale : scales) require(halfIsFinite(scale), "chunks.scales must be finite throughout");
  request.chunkRows.assign(chunkRows.begin(), chunkRows.end());
  request.vectors.reserve(vectors.size() + readPaddingBytes);
  request.vectors.assign(vectors.begin(), vectors.end());
  request.vectors.resize(vectors.size() + readPaddingBytes);
  request.scales.reserve(rows + readPaddingBytes / 2);
  request.scales.assign(scales.begin(), scales.end());
  request.scales.resize(rows + readPaddingBytes / 2);
  return request;
}

/// Null if the options name no device.
std::unique_ptr<Residents> takeDevice(const Napi::Value& given) {
  if (given.IsUndefined()) return nullptr;
  const Napi::Object device = takeObject(given, "options.device");
  const auto [driver, ordinal, memoryBytes] = properties(device, "driver", "ordinal", "memoryBytes");
  const auto number = uint32_t(takeInteger(ordinal, "options.device.ordinal", 0, devicesMost));
  const auto most = uint64_t(takeInteger(memoryBytes, "options.device.memoryBytes"));
  return std::make_unique<Residents>(loadDeviceLibrary(takeString(driver, "options.device.driver")), number, most);
}

Napi::Value inspectionResult(Napi::Env env, const SegmentInspection& found) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("segmentId", double(found.segmentId));
  object.Set("dim", found.shape.dim);
  object.Set("rowBits", found.shape.bits);
  object.Set("state", found.sealed ? "sealed" : "active");
  object.Set("fileBytes", double(found.fileBytes));
  object.Set("records", found.records);
  object.Set("chunks", found.chunks);
  object.Set("tokenVectors", double(found.rows));
  object.Set("recordBytes", double(found.recordBytes));
  object.Set("directoryBytes", double(found.directoryBytes));
  object.Set("recordsVerified", found.recordsVerified);
  Napi::Array damaged = Napi::Array::New(env);
  for (const RecordDamage& damage : found.damaged) {
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("record", damage.record);
    entry.Set("what", damage.what);
    damaged.Set(damaged.Length(), entry);
  }
  object.Set("damaged", damaged);
  auto versionIds = Napi::Float64Array::New(env, found.versionIds.size());
  for (size_t r = 0; r < found.versionIds.size(); ++r) versionIds[r] = double(found.versionIds[r]);
  object.Set("versionIds", versionIds);
  return object;
}

/// Runs `inspect(path, verify)` on a derived file. `setCounts` adds its counts to the result, beside `damage`.
template <typename Found, typename SetCounts>
Napi::Value inspectDerived(AsyncHub& hub, const Napi::CallbackInfo& info, Found (*inspect)(const std::string&, bool),
                           SetCounts setCounts) {
  auto execute = [inspect, path = takeString(info[0], "path"), verify = takeBoolean(info[1], "verify")] {
    return inspect(path, verify);
  };
  auto result = [setCounts](Napi::Env env, Found& found) -> Napi::Value {
    Napi::Object object = Napi::Object::New(env);
    setCounts(object, found);
    object.Set("damage", found.damage);
    return object;
  };
  return hub.start(info.Env(), hub.engine().background(), makeTask(std::move(execute), std::move(result)));
}

}  // namespace

void EngineObject::define(Napi::Env env, Napi::Object exports) {
  auto* data = new EnvironmentData();
  data->indexConstructor = Napi::Persistent(IndexObject::define(env));
  data->searchConstructor = Napi::Persistent(SearchObject::define(env));
  env.SetInstanceData(data);
  exports.Set("Engine", DefineClass(env, "Engine",
                                    {
                                        InstanceAccessor<&EngineObject::info>("info"),
                                        InstanceMethod<&EngineObject::memory>("memory"),
                                        InstanceMethod<&EngineObject::memoryOwners>("memoryOwners"),
                                        InstanceMethod<&EngineObject::device>("device"),
                                        InstanceMethod<&EngineObject::createIndex>("createIndex"),
                                        InstanceMethod<&EngineObject::score>("score"),
                                        InstanceMethod<&EngineObject::kernelCalls>("kernelCalls"),
                                        InstanceMethod<&EngineObject::timeKernel>("timeKernel"),
                                        InstanceMethod<&EngineObject::inspectSegment>("inspectSegment"),
                                        InstanceMethod<&EngineObject::inspectCodes>("inspectCodes"),
                                        InstanceMethod<&EngineObject::inspectPostings>("inspectPostings"),
                                        InstanceMethod<&EngineObject::inspectColumn>("inspectColumn"),
                                        InstanceMethod<&EngineObject::close>("close"),
                                    }));
}

EngineObject::EngineObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<EngineObject>(info) {
  guarded(info.Env(), [&] {
    const Napi::Object options = takeObject(info[0], "options");
    const auto threads = uint32_t(takeInteger(options.Get("threads"), "options.threads", 0, threadsMax));
    const std::string kernel = takeString(options.Get("kernel"), "options.kernel");
    const Napi::Value memory = options.Get("memoryBytes");
    if (!memory.IsUndefined()) Memory::ofProcess().bound(takeInteger(memory, "options.memoryBytes"));
    hub_ = AsyncHub::create(info.Env(), std::make_unique<Engine>(threads, kernel), takeDevice(options.Get("device")));
    return info.Env().Undefined();
  });
}

EngineObject::~EngineObject() {
  if (hub_) hub_->close();
}

AsyncHub& EngineObject::requireOpen() const {
  if (!hub_->open()) throw Error(ErrorCode::closed, "the engine is closed");
  return *hub_;
}

Napi::Value EngineObject::info(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    Engine& engine = requireOpen().engine();
    Napi::Array table = Napi::Array::New(env);
    for (const Kernel* kernel : kernels()) {
      Napi::Object row = Napi::Object::New(env);
      row.Set("name", kernel->name);
      row.Set("supported", Napi::Boolean::New(env, kernel->requires_(cpuFeatures())));
      table.Set(table.Length(), row);
    }
    Napi::Object result = Napi::Object::New(env);
    result.Set("kernel", engine.kernel().name);
    result.Set("kernels", table);
    result.Set("threads", engine.threads());
    return result;
  });
}

Napi::Value EngineObject::memory(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    requireOpen();
    const MemoryUse use = Memory::ofProcess().use();
    Napi::Object object = Napi::Object::New(env);
    object.Set("mostBytes", double(use.most));
    object.Set("takenBytes", double(use.taken));
    object.Set("codesBytes", double(use.codes));
    object.Set("heldBytes", double(use.held));
    return object;
  });
}

Napi::Value EngineObject::memoryOwners(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    requireOpen();
    Napi::Array owners = Napi::Array::New(env);
    for (const Memory::AccountUse& use : Memory::ofProcess().accounts()) {
      Napi::Object object = Napi::Object::New(env);
      object.Set("owner", use.owner);
      object.Set("takenBytes", double(use.taken));
      owners.Set(owners.Length(), object);
    }
    return owners;
  });
}

Napi::Value EngineObject::device(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    Residents* const residents = requireOpen().residents();
    if (residents == nullptr) return env.Undefined();
    const DeviceUse use = residents->use();
    Napi::Object object = Napi::Object::New(env);
    object.Set("name", residents->device().name);
    object.Set("mostBytes", double(use.mostBytes));
    object.Set("bytes", double(use.bytes));
    object.Set("segments", use.segments);
    object.Set("coming", use.coming);
    object.Set("scored", double(use.scored));
    object.Set("refusal", use.refusal);
    object.Set("failure", use.failure);
    return object;
  });
}

Napi::Value EngineObject::createIndex(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const IndexOptions options = takeIndexOptions(takeObject(info[0], "options"));
    requireOpen();
    return IndexObject::create(info.Env(), hub_, info.This().As<Napi::Object>(), options);
  });
}

Napi::Value EngineObject::score(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    ScoreRequest request = takeScoreRequest(info[0], info[1]);
    AsyncHub& hub = requireOpen();
    Engine& engine = hub.engine();
    auto execute = [&engine, request = std::move(request)] { return maxsimd::score(engine, request); };
    auto result = [](Napi::Env env, ScoreOutcome& outcome) -> Napi::Value {
      Napi::Object object = Napi::Object::New(env);
      object.Set("scores", makeArray<float, Napi::Float32Array>(env, outcome.scores.data(), outcome.scores.size()));
      if (!outcome.similarities.empty()) {
        object.Set("similarities",
                   makeArray<float, Napi::Float32Array>(env, outcome.similarities.data(), outcome.similarities.size()));
        object.Set("documentTokens", makeArray<uint32_t, Napi::Uint32Array>(env, outcome.documentTokens.data(),
                                                                            outcome.documentTokens.size()));
      }
      return object;
    };
    return hub.start(info.Env(), engine.compute(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value EngineObject::kernelCalls(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    requireOpen();
    Napi::Object calls = Napi::Object::New(env);
    for (const Kernel* kernel : kernels()) calls.Set(kernel->name, double(kernel->calls->load()));
    return calls;
  });
}

Napi::Value EngineObject::timeKernel(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    ScoreRequest request = takeScoreRequest(info[0], info[1]);
    AsyncHub& hub = requireOpen();
    Engine& engine = hub.engine();
    const auto order = takeArray<uint32_t>(info[2], "order");
    for (const uint32_t chunk : order) require(chunk < request.chunkRows.size(), "order must hold chunk numbers");
    const auto repeats = uint32_t(takeInteger(info[3], "repeats", 1, 1e6));
    auto execute = [&engine, request = std::move(request), order = std::vector<uint32_t>(order.begin(), order.end()),
                    repeats] { return maxsimd::timeKernel(engine, request, order, repeats); };
    auto result = [](Napi::Env env, KernelTiming& timing) -> Napi::Value {
      Napi::Object object = Napi::Object::New(env);
      object.Set("wallMs", timing.wallMs);
      object.Set("cpuMs", timing.cpuMs);
      object.Set("scores", makeArray<float, Napi::Float32Array>(env, timing.scores.data(), timing.scores.size()));
      return object;
    };
    return hub.start(info.Env(), engine.compute(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value EngineObject::close(const Napi::CallbackInfo& info) {
  hub_->close();
  return info.Env().Undefined();
}

Napi::Value EngineObject::inspectSegment(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto [records, first, bytes] =
        properties(takeObject(info[1], "options"), "recordsReferenced", "firstRecord", "verifyBytesMax");
    const auto referenced = uint32_t(takeInteger(records, "options.recordsReferenced", 0, UINT32_MAX));
    const InspectionRange range{uint32_t(takeInteger(first, "options.firstRecord", 0, UINT32_MAX)),
                                takeInteger(bytes, "options.verifyBytesMax")};
    AsyncHub& hub = requireOpen();
    auto execute = [path = takeString(info[0], "path"), referenced, range] {
      return maxsimd::inspectSegment(path, referenced, range);
    };
    auto result = [](Napi::Env env, SegmentInspection& found) { return inspectionResult(env, found); };
    return hub.start(info.Env(), hub.engine().background(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value EngineObject::inspectCodes(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return inspectDerived(requireOpen(), info, maxsimd::inspectCodes, [](Napi::Object& object, CodesInspection& found) {
      object.Set("centroids", found.centroids);
      object.Set("codes", found.codes);
    });
  });
}

Napi::Value EngineObject::inspectPostings(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return inspectDerived(requireOpen(), info, maxsimd::inspectPostings,
                          [](Napi::Object& object, PostingsInspection& found) {
                            object.Set("terms", found.terms);
                            object.Set("postings", found.postings);
                          });
  });
}

Napi::Value EngineObject::inspectColumn(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return inspectDerived(requireOpen(), info, maxsimd::inspectColumn, [](Napi::Object& object, ColumnInspection& found) {
      object.Set("field", found.field);
      object.Set("values", found.entries);
      object.Set("items", found.items);
    });
  });
}

}  // namespace maxsimd
