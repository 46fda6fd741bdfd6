#include "binding/index_object.h"

#include "binding/arguments.h"
#include "binding/engine_object.h"
#include "binding/index_arguments.h"
#include "binding/task.h"

#include <utility>

namespace maxsimd {
namespace {

Napi::Object segmentInfo(Napi::Env env, const SegmentInfo& info) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("segmentId", double(info.id));
  object.Set("state", info.counts.sealed ? "sealed" : "active");
  object.Set("records", info.counts.records);
  object.Set("recordsLive", info.counts.recordsLive);
  object.Set("chunks", info.counts.chunks);
  object.Set("tokenVectors", double(info.counts.rows));
  object.Set("termBytes", double(info.counts.termBytes));
  object.Set("fileBytes", double(info.counts.fileBytes));
  object.Set("derivedBytes", double(info.derivedBytes));
  object.Set("postingBytes", double(info.counts.postingBytes));
  object.Set("centroids", info.centroids);
  object.Set("codebook", info.codebook);
  object.Set("keepsRanges", Napi::Boolean::New(env, info.counts.keepsRanges));
  object.Set("codesOutdated", Napi::Boolean::New(env, info.codesOutdated));
  return object;
}

/// `bytes`: a whole record that was found intact.
Napi::Object recordObject(Napi::Env env, const uint8_t* bytes, RowShape shape) {
  RecordView view{bytes, {}};
  const RecordHeader& header = view.header();
  view.layout = RecordLayout::of(shape, header);
  Napi::Object object = Napi::Object::New(env);
  object.Set("versionId", double(header.versionId));
  object.Set("chunkRows", makeArray<uint32_t, Napi::Uint32Array>(env, view.chunkRows(), header.chunks));
  object.Set("vectors", makeArray<int8_t, Napi::Int8Array>(env, view.vectors(), header.rows * shape.bytes()));
  object.Set("scales", makeArray<uint16_t, Napi::Uint16Array>(env, view.scales(), header.rows));
  object.Set("terms", makeArray<uint8_t, Napi::Uint8Array>(env, view.terms(), size_t(header.terms) * termBytes));
  if (view.ranged()) {
    object.Set("chunkRanges", makeArray<uint32_t, Napi::Uint32Array>(
                                  env, reinterpret_cast<const uint32_t*>(view.ranges().data()), header.chunks * 3));
    object.Set("rowPlaces", makeArray<uint8_t, Napi::Uint8Array>(env, view.places().data(), view.places().size()));
  }
  return object;
}

}  // namespace

Napi::Function IndexObject::define(Napi::Env env) {
  return DefineClass(env, "Index",
                     {
                         InstanceMethod<&IndexObject::createSegment>("createSegment"),
                         InstanceMethod<&IndexObject::openSegment>("openSegment"),
                         InstanceMethod<&IndexObject::addParts>("addParts"),
                         InstanceMethod<&IndexObject::append>("append"),
                         InstanceMethod<&IndexObject::sync>("sync"),
                         InstanceMethod<&IndexObject::seal>("seal"),
                         InstanceMethod<&IndexObject::buildCodes>("buildCodes"),
                         InstanceMethod<&IndexObject::buildPostings>("buildPostings"),
                         InstanceMethod<&IndexObject::copyRecords>("copyRecords"),
                         InstanceMethod<&IndexObject::readRecord>("readRecord"),
                         InstanceMethod<&IndexObject::dropSegment>("dropSegment"),
                         InstanceMethod<&IndexObject::loadLifespans>("loadLifespans"),
                         InstanceMethod<&IndexObject::copyLifespans>("copyLifespans"),
                         InstanceMethod<&IndexObject::recordsSeenSince>("recordsSeenSince"),
                         InstanceMethod<&IndexObject::publish>("publish"),
                         InstanceMethod<&IndexObject::search>("search"),
                         InstanceMethod<&IndexObject::beginSearch>("beginSearch"),
                         InstanceMethod<&IndexObject::matching>("matching"),
                         InstanceMethod<&IndexObject::tokenVectors>("tokenVectors"),
                         InstanceMethod<&IndexObject::countSpans>("countSpans"),
                         InstanceMethod<&IndexObject::recordsWithoutValues>("recordsWithoutValues"),
                         InstanceMethod<&IndexObject::addValues>("addValues"),
                         InstanceMethod<&IndexObject::saveValues>("saveValues"),
                         InstanceMethod<&IndexObject::copyValues>("copyValues"),
                         InstanceMethod<&IndexObject::dropValues>("dropValues"),
                         InstanceMethod<&IndexObject::countValues>("countValues"),
                         InstanceMethod<&IndexObject::findValue>("findValue"),
                         InstanceMethod<&IndexObject::verifyRecord>("verifyRecord"),
                         InstanceMethod<&IndexObject::segments>("segments"),
                         InstanceMethod<&IndexObject::close>("close"),
                     });
}

Napi::Value IndexObject::create(Napi::Env env, const std::shared_ptr<AsyncHub>& hub, Napi::Object engine,
                                IndexOptions options) {
  if (options.exactTokenVectorsMax == 0)
    options.exactTokenVectorsMax = hub->engine().exactTokenVectorsMax(options.shape.dim);
  const Napi::Object object = env.GetInstanceData<EnvironmentData>()->indexConstructor.New({});
  IndexObject* self = Unwrap(object);
  self->hub_ = hub;
  self->engine_ = Napi::Persistent(engine);
  self->index_ = std::make_shared<Index>(hub->engine().kernel(), options, hub->residents());
  self->groupSync_ = std::make_shared<GroupSync>(self->index_);
  return object;
}

IndexObject::IndexObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<IndexObject>(info) {}

Index& IndexObject::requireOpen() const {
  if (index_ == nullptr) throw Error(ErrorCode::closed, "the index is closed");
  if (!hub_->open()) throw Error(ErrorCode::closed, "the engine is closed");
  return *index_;
}

Deadline IndexObject::untilStopped() const { return {Clock::time_point::max(), &hub_->engine().stopping}; }

Napi::Value IndexObject::createSegment(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    const uint64_t id = takeSegmentId(info[0]);
    auto execute = [index = index_, id, path = takeString(info[1], "path")] { index->createSegment(id, path); };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute)));
  });
}

Napi::Value IndexObject::openSegment(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto [givenRecords, isSealed, copy] =
        properties(takeObject(info[2], "expected"), "recordsReferenced", "sealed", "partial");
    const auto partial = takePartialCopy(copy);
    requireOpen();
    const uint64_t id = takeSegmentId(info[0]);
    const auto records = uint32_t(takeInteger(givenRecords, "recordsReferenced", 0, UINT32_MAX));
    const bool sealed = takeBoolean(isSealed, "sealed");
    auto execute = [index = index_, id, path = takeString(info[1], "path"), records, sealed, partial] {
      return index->openSegment(id, path, records, sealed, partial ? &*partial : nullptr);
    };
    auto buildGraph = [hub = hub_, index = index_, deadline = untilStopped()] {
      if (hub->open()) hub->engine().background().post([index, deadline] { index->buildGraph(deadline); });
    };
    auto result = [buildGraph = std::move(buildGraph)](Napi::Env env, SegmentInfo& opened) -> Napi::Value {
      if (opened.centroids >= graphCentroids) buildGraph();
      return segmentInfo(env, opened);
    };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::addParts(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const uint64_t id = takeSegmentId(info[0]);
    requireOpen().addParts(id, takeArray<uint8_t>(info[1], "parts"));
    return info.Env().Undefined();
  });
}

Napi::Value IndexObject::append(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const uint64_t id = takeSegmentId(info[0]);
    RecordParts taken = takeRecord(info[1], requireOpen().options().shape);
    requireOpen();
    auto execute = [index = index_, id, parts = std::move(taken)]() mutable {
      return index->append(id, std::move(parts));
    };
    auto result = [](Napi::Env env, uint32_t& record) -> Napi::Value {
      Napi::Object object = Napi::Object::New(env);
      object.Set("record", record);
      return object;
    };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    const uint64_t id = takeSegmentId(info[0]);
    auto work = makeTask([] {});
    Napi::Promise promise = hub_->begin(info.Env(), work);
    groupSync_->request(hub_->engine().files(), id, [hub = hub_.get(), work](std::exception_ptr failure) {
      try {
        work->execute();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
      hub->finish(work, std::move(failure));
    });
    return promise;
  });
}

Napi::Value IndexObject::seal(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    auto execute = [index = index_, id = takeSegmentId(info[0])] { return index->seal(id); };
    auto result = [](Napi::Env env, SegmentInfo& sealed) -> Napi::Value { return segmentInfo(env, sealed); };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::buildCodes(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    struct Built {
      Index::CodesBuilt codes;
      double milliseconds;
    };
    const bool plain = !info[1].IsUndefined() && info[1].ToBoolean();
    auto execute = [index = index_, id = takeSegmentId(info[0]), deadline = untilStopped(), plain] {
      const auto start = Clock::now();
      const Index::CodesBuilt codes = index->buildCodes(id, deadline, plain);
      index->buildGraph(deadline);
      return Built{codes, millisecondsBetween(start, Clock::now())};
    };
    auto result = [](Napi::Env env, Built& built) -> Napi::Value {
      Napi::Object object = Napi::Object::New(env);
      object.Set("chunks", built.codes.chunks);
      object.Set("bytes", double(built.codes.bytes));
      object.Set("centroids", built.codes.centroids);
      object.Set("fitted", Napi::Boolean::New(env, built.codes.fitted));
      object.Set("milliseconds", built.milliseconds);
      return object;
    };
    return hub_->start(info.Env(), hub_->engine().background(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::buildPostings(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    auto execute = [index = index_, id = takeSegmentId(info[0]), deadline = untilStopped()] {
      index->buildPostings(id, deadline);
    };
    return hub_->start(info.Env(), hub_->engine().background(), makeTask(std::move(execute)));
  });
}

Napi::Value IndexObject::copyRecords(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    const uint64_t from = takeSegmentId(info[0], "fromSegmentId");
    const auto records = takeArray<uint32_t>(info[1], "records");
    const uint64_t to = takeSegmentId(info[2], "toSegmentId");
    auto execute = [index = index_, from, records = std::vector<uint32_t>(records.begin(), records.end()), to,
                    deadline = untilStopped()] { return index->copyRecords(from, records, to, deadline); };
    auto result = [](Napi::Env env, std::vector<uint32_t>& copies) -> Napi::Value {
      return makeArray<uint32_t, Napi::Uint32Array>(env, copies.data(), copies.size());
    };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::readRecord(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const RowShape shape = requireOpen().options().shape;
    auto execute = [index = index_, id = takeSegmentId(info[0]),
                    record = uint32_t(takeInteger(info[1], "record", 0, UINT32_MAX))] {
      return index->readRecord(id, record);
    };
    auto result = [shape](Napi::Env env, std::vector<uint8_t>& bytes) -> Napi::Value {
      return recordObject(env, bytes.data(), shape);
    };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::dropSegment(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Index& index = requireOpen();
    const uint64_t id = takeSegmentId(info[0]);
    // Unmapping gigabytes takes long, so another thread drops the last reference.
    auto held = std::make_shared<std::vector<SegmentSnapshot>>(index.snapshot());
    index.dropSegment(id);
    hub_->engine().files().post([held = std::move(held)]() mutable { held.reset(); });
    return info.Env().Undefined();
  });
}

Napi::Value IndexObject::loadLifespans(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto loads = takeLifespanLoads(info[0]);
    requireOpen().loadLifespans(loads);
    return info.Env().Undefined();
  });
}

Napi::Value IndexObject::copyLifespans(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Index& index = requireOpen();
    const auto records = takeArray<uint32_t>(info[1], "records");
    index.copyLifespans(takeSegmentId(info[0], "fromSegmentId"), {records.begin(), records.end()},
                        takeSegmentId(info[2], "toSegmentId"), uint32_t(takeInteger(info[3], "first", 0, UINT32_MAX)));
    return info.Env().Undefined();
  });
}

Napi::Value IndexObject::recordsSeenSince(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    const Index& index = requireOpen();
    return seenRecords(env, index.recordsSeenSince(takeSegmentId(info[0]), takeInteger(info[1], "generation")));
  });
}

Napi::Value IndexObject::publish(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const uint64_t generation = takeInteger(info[0], "generation", 1);
    const auto born = takeLifespanColumns(info[1], "born"), died = takeLifespanColumns(info[2], "died");
    requireOpen().publish(generation, born, died);
    return info.Env().Undefined();
  });
}

Napi::Value IndexObject::matching(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Matching matching = takeMatching(info[0]);
    requireOpen();
    matching.deadline.stopping = &hub_->engine().stopping;
    auto execute = [index = index_, matching = std::move(matching)] {
      return matchingVersions(*index, matching.generation, matching.filter, matching.deadline);
    };
    auto result = [](Napi::Env env, std::vector<uint64_t>& versionIds) -> Napi::Value {
      auto array = Napi::Float64Array::New(env, versionIds.size());
      std::copy(versionIds.begin(), versionIds.end(), array.Data());
      return array;
    };
    return hub_->start(info.Env(), hub_->engine().compute(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::tokenVectors(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Matching matching = takeMatching(info[0]);
    requireOpen();
    matching.deadline.stopping = &hub_->engine().stopping;
    auto execute = [index = index_, matching = std::move(matching)] {
      return matchingTokenVectors(*index, matching.generation, matching.filter, matching.deadline);
    };
    auto result = [](Napi::Env env, uint64_t& rows) -> Napi::Value { return Napi::Number::New(env, double(rows)); };
    return hub_->start(info.Env(), hub_->engine().compute(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::countSpans(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    SpanCounting counting = takeSpanCounting(info[0]);
    requireOpen();
    counting.deadline.stopping = &hub_->engine().stopping;
    auto execute = [index = index_, counting = std::move(counting)] {
      return maxsimd::countSpans(*index, counting.generation, counting.spans, counting.filter, counting.deadline);
    };
    auto result = [](Napi::Env env, SpanCounts& counts) -> Napi::Value {
      const size_t spans = counts.spans.size();
      auto documents = Napi::Float64Array::New(env, spans), chunks = Napi::Float64Array::New(env, spans);
      auto tokenVectors = Napi::Float64Array::New(env, spans);
      for (size_t s = 0; s < spans; ++s) {
        documents[s] = double(counts.spans[s].documents);
        chunks[s] = double(counts.spans[s].chunks);
        tokenVectors[s] = double(counts.spans[s].rows);
      }
      Napi::Object object = Napi::Object::New(env);
      object.Set("documents", double(counts.documents));
      object.Set("spanDocuments", documents);
      object.Set("chunks", chunks);
      object.Set("tokenVectors", tokenVectors);
      return object;
    };
    return hub_->start(info.Env(), hub_->engine().compute(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::verifyRecord(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    requireOpen();
    const uint64_t id = takeSegmentId(info[0]);
    const auto record = uint32_t(takeInteger(info[1], "record", 0, UINT32_MAX));
    auto execute = [index = index_, id, record] { return index->verifyRecord(id, record); };
    auto result = [](Napi::Env env, Segment::Verified& found) -> Napi::Value {
      Napi::Object object = Napi::Object::New(env);
      object.Set("damage", found.damage);
      object.Set("wholeSegment", Napi::Boolean::New(env, found.wholeSegment));
      return object;
    };
    return hub_->start(info.Env(), hub_->engine().files(), makeTask(std::move(execute), std::move(result)));
  });
}

Napi::Value IndexObject::segments(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    Napi::Array array = Napi::Array::New(env);
    for (const SegmentInfo& segment : requireOpen().segments()) array.Set(array.Length(), segmentInfo(env, segment));
    return array;
  });
}

Napi::Value IndexObject::close(const Napi::CallbackInfo& info) {
  index_ = nullptr;
  groupSync_ = nullptr;
  return info.Env().Undefined();
}

}  // namespace maxsimd
