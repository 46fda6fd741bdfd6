// `NativeEngine.inspectSegment`, `.inspectCodes` and `.inspectPostings` (src/index/engine/native.ts).
#include "store/inspection.h"

#include "binding/arguments.h"
#include "binding/engine_object.h"
#include "binding/task.h"
#include "codes/codes.h"
#include "runtime/engine.h"
#include "store/postings.h"

#include <utility>

namespace maxsimd {
namespace {

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

}  // namespace maxsimd
