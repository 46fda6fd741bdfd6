// The methods of an index handle that load and count values of metadata.
#include "binding/arguments.h"
#include "binding/index_arguments.h"
#include "binding/index_object.h"
#include "binding/task.h"
#include "index/facet_count.h"
#include "values/field_tokens.h"

#include <algorithm>
#include <utility>

namespace maxsimd {
namespace {

/// Other work has its turn after so long.
constexpr auto countedAtOnce = std::chrono::milliseconds(5);

std::vector<std::string> takeStrings(const Napi::Value& value, const std::string& name) {
  if (!value.IsArray()) refuse(name, "an array");
  const auto given = value.As<Napi::Array>();
  std::vector<std::string> strings;
  for (uint32_t s = 0; s < given.Length(); ++s) strings.push_back(takeString(given.Get(s), name));
  return strings;
}

/// The names of fields, given as JSON strings.
std::vector<std::string> takeFields(const Napi::Value& value, const std::string& name) {
  std::vector<std::string> fields = takeStrings(value, name);
  for (std::string& field : fields) field = stringOf(field);
  return fields;
}

/// The fields that a `where` compares and those that are named, each once.
std::vector<std::string> takeNeeded(const Napi::Value& value) {
  const auto [where, named] = properties(takeObject(value, "needed"), "where", "fields");
  std::vector<std::string> fields;
  if (!named.IsUndefined()) fields = takeFields(named, "needed.fields");
  if (!where.IsUndefined()) {
    for (std::string& field : takeCondition(where, "needed.where").fields) fields.push_back(std::move(field));
  }
  std::ranges::sort(fields);
  fields.erase(std::ranges::unique(fields).begin(), fields.end());
  return fields;
}

Napi::Object facetObject(Napi::Env env, const Facet& facet) {
  const size_t count = facet.values.size();
  auto tokens = Napi::Array::New(env, count), keys = Napi::Array::New(env, count);
  auto counts = Napi::Float64Array::New(env, count), versionIds = Napi::Float64Array::New(env, count);
  for (uint32_t v = 0; v < count; ++v) {
    const Facet::Value& value = facet.values[v];
    counts[v] = double(value.count);
    versionIds[v] = double(value.versionId);
    if (isCut(value.key)) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(value.key.data());
      keys[v] = makeArray<uint8_t, Napi::Uint8Array>(env, bytes, value.key.size());
    } else {
      tokens[v] = Napi::String::New(env, tokenOfKey(value.key));
    }
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("distinct", double(facet.distinct));
  object.Set("tokens", tokens);
  object.Set("keys", keys);
  object.Set("counts", counts);
  object.Set("versionIds", versionIds);
  return object;
}

Napi::Array stringArray(Napi::Env env, const std::vector<std::string>& strings) {
  Napi::Array array = Napi::Array::New(env, strings.size());
  for (uint32_t s = 0; s < strings.size(); ++s) array[s] = Napi::String::New(env, strings[s]);
  return array;
}

Napi::Object columnFiles(Napi::Env env, FieldValues::Saved& saved) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("written", stringArray(env, saved.written));
  object.Set("surplus", stringArray(env, saved.surplus));
  return object;
}

using Held = std::shared_ptr<FacetCount>;

Napi::Value countResult(Napi::Env env, const Held& counting, bool isDone) {
  Napi::Object object = Napi::Object::New(env);
  if (!isDone) {
    object.Set("paused", Napi::External<Held>::New(env, new Held(counting), [](Napi::Env, Held* held) { delete held; }));
    return object;
  }
  object.Set("documents", double(counting->documents()));
  Napi::Array facets = Napi::Array::New(env);
  for (const Facet& facet : counting->facets()) facets.Set(facets.Length(), facetObject(env, facet));
  object.Set("facets", facets);
  if (counting->tooMany()) object.Set("tooMany", double(*counting->tooMany()));
  return object;
}

}  // namespace

Napi::Value IndexObject::recordsWithoutValues(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const uint64_t id = takeSegmentId(info[0]), generation = takeInteger(info[1], "generation");
    auto fields = takeNeeded(info[2]);
    requireOpen();
    auto execute = [index = index_, id, generation, fields = std::move(fields)] {
      return index->recordsWithoutValues(id, generation, fields);
    };
    auto result = [](Napi::Env env, Index::SeenRecords& lacking) { return seenRecords(env, lacking); };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::addValues(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const uint64_t id = takeSegmentId(info[0]);
    auto fields = takeNeeded(info[1]);
    const auto taken = takeArray<uint32_t>(info[2], "records");
    std::vector<uint32_t> records(taken.begin(), taken.end());
    auto objects = takeStrings(info[3], "objects");
    requireOpen();
    auto execute = [index = index_, id, fields = std::move(fields), records = std::move(records),
                    objects = std::move(objects)] { index->addValues(id, fields, records, objects); };
    return hub_->start(info.Env(), hub_->engine().compute(), makeTask(std::move(execute)));
  });
}

Napi::Value IndexObject::saveValues(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const uint64_t id = takeSegmentId(info[0]);
    auto fields = takeNeeded(info[1]);
    requireOpen();
    auto execute = [index = index_, id, fields = std::move(fields)] { return index->saveValues(id, fields); };
    return hub_->start(info.Env(), hub_->engine().columns(), makeTask(std::move(execute), columnFiles));
  });
}

Napi::Value IndexObject::copyValues(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const uint64_t id = takeSegmentId(info[0]);
    requireOpen();
    return hub_->start(info.Env(), hub_->engine().columns(), makeTask(index_->copyOfValues(id), columnFiles));
  });
}

Napi::Value IndexObject::dropValues(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    index_->dropValues(takeSegmentId(info[0]));
    return info.Env().Undefined();
  });
}

Napi::Value IndexObject::countValues(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Matching matching = takeMatching(info[0]);
    const auto [fields, limit, distinctMost, bytesMost] =
        properties(info[0].As<Napi::Object>(), "fields", "limit", "distinctMax", "bytesMax");
    FacetRequest request{matching.generation,
                         std::move(matching.filter),
                         takeFields(fields, "counting.fields"),
                         uint32_t(takeInteger(limit, "counting.limit", 1, UINT32_MAX)),
                         uint32_t(takeInteger(distinctMost, "counting.distinctMax", 1, UINT32_MAX)),
                         takeInteger(bytesMost, "counting.bytesMax", 1)};
    if (!info[1].IsUndefined() && !info[1].IsExternal()) refuse("paused", "what a call before returned");
    requireOpen();
    Held counting = info[1].IsUndefined() ? std::make_shared<FacetCount>(index_, std::move(request))
                                          : *info[1].As<Napi::External<Held>>().Data();
    Deadline deadline = matching.deadline;
    deadline.stopping = &hub_->engine().stopping;
    auto execute = [counting, deadline] { return counting->run(deadline, Clock::now() + countedAtOnce); };
    auto result = [counting](Napi::Env env, bool& isDone) { return countResult(env, counting, isDone); };
    return hub_->start(info.Env(), hub_->engine().compute(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::findValue(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::string object = takeString(info[0], "object"), field = stringOf(takeString(info[1], "field"));
    requireOpen();
    const auto key = takeArray<uint8_t>(info[2], "key");
    const auto token = findToken(object, field, {reinterpret_cast<const char*>(key.data()), key.size()});
    return token ? Napi::String::New(info.Env(), *token).As<Napi::Value>() : info.Env().Undefined();
  });
}

}  // namespace maxsimd
