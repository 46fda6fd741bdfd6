// The JavaScript handles of an index and of a search that gives way (`NativeIndex` and `NativeSearchRun` in
// src/index/engine/native.ts).
#pragma once

#include "binding/async_work.h"
#include "index/group_sync.h"
#include "index/index.h"

#include <napi.h>

#include <memory>

namespace maxsimd {

struct SlicedSearch;

class IndexObject : public Napi::ObjectWrap<IndexObject> {
 public:
  static Napi::Function define(Napi::Env env);
  /// `engine` is kept from garbage collection as long as the handle lives.
  static Napi::Value create(Napi::Env env, const std::shared_ptr<AsyncHub>& hub, Napi::Object engine,
                            IndexOptions options);
  explicit IndexObject(const Napi::CallbackInfo& info);

  /// Throws `closed`.
  Index& requireOpen() const;

 private:
  Napi::Value createSegment(const Napi::CallbackInfo& info);
  Napi::Value openSegment(const Napi::CallbackInfo& info);
  Napi::Value addParts(const Napi::CallbackInfo& info);
  Napi::Value append(const Napi::CallbackInfo& info);
  Napi::Value sync(const Napi::CallbackInfo& info);
  Napi::Value seal(const Napi::CallbackInfo& info);
  Napi::Value buildCodes(const Napi::CallbackInfo& info);
  Napi::Value buildPostings(const Napi::CallbackInfo& info);
  Napi::Value copyRecords(const Napi::CallbackInfo& info);
  Napi::Value readRecord(const Napi::CallbackInfo& info);
  Napi::Value dropSegment(const Napi::CallbackInfo& info);
  Napi::Value loadLifespans(const Napi::CallbackInfo& info);
  Napi::Value copyLifespans(const Napi::CallbackInfo& info);
  Napi::Value recordsSeenSince(const Napi::CallbackInfo& info);
  Napi::Value publish(const Napi::CallbackInfo& info);
  Napi::Value search(const Napi::CallbackInfo& info);
  Napi::Value beginSearch(const Napi::CallbackInfo& info);
  Napi::Value matching(const Napi::CallbackInfo& info);
  Napi::Value tokenVectors(const Napi::CallbackInfo& info);
  Napi::Value countSpans(const Napi::CallbackInfo& info);
  Napi::Value recordsWithoutValues(const Napi::CallbackInfo& info);
  Napi::Value addValues(const Napi::CallbackInfo& info);
  Napi::Value saveValues(const Napi::CallbackInfo& info);
  Napi::Value copyValues(const Napi::CallbackInfo& info);
  Napi::Value dropValues(const Napi::CallbackInfo& info);
  Napi::Value countValues(const Napi::CallbackInfo& info);
  Napi::Value findValue(const Napi::CallbackInfo& info);
  Napi::Value verifyRecord(const Napi::CallbackInfo& info);
  Napi::Value segments(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<SlicedSearch> takeSearch(const Napi::Value& value);
  /// Ends long work when the environment goes.
  Deadline untilStopped() const;

  std::shared_ptr<AsyncHub> hub_;
  Napi::ObjectReference engine_;
  /// Null once closed.
  std::shared_ptr<Index> index_;
  std::shared_ptr<GroupSync> groupSync_;
};

class SearchObject : public Napi::ObjectWrap<SearchObject> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit SearchObject(const Napi::CallbackInfo& info);

 private:
  friend class IndexObject;
  Napi::Value next(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<AsyncHub> hub_;
  Napi::ObjectReference index_;
  /// Null once closed.
  std::shared_ptr<SlicedSearch> sliced_;
};

}  // namespace maxsimd
