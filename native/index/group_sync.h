// Group commit: callers that ask for a sync of a segment while one is running share the next one.
#pragma once

#include "index/index.h"
#include "runtime/pool.h"

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace maxsimd {

class GroupSync : public std::enable_shared_from_this<GroupSync> {
 public:
  /// Called once, on a thread of the pool: null, or why the sync failed.
  using Completion = std::function<void(std::exception_ptr)>;

  explicit GroupSync(std::shared_ptr<Index> index) : index_(std::move(index)) {}

  void request(Pool& pool, uint64_t segmentId, Completion completion) {
    {
      const std::lock_guard lock(mutex_);
      const auto [group, idle] = waiting_.try_emplace(segmentId);
      group->second.push_back(std::move(completion));
      if (!idle) return;
    }
    pool.post([self = shared_from_this(), segmentId] { self->run(segmentId); });
  }

 private:
  void run(uint64_t segmentId) {
    while (true) {
      std::vector<Completion> group;
      {
        const std::lock_guard lock(mutex_);
        const auto found = waiting_.find(segmentId);
        if (found->second.empty()) {
          waiting_.erase(found);
          return;
        }
        group.swap(found->second);
      }
      std::exception_ptr failure;
      try {
        index_->sync(segmentId);
      } catch (...) {
        failure = std::current_exception();
      }
      for (const Completion& completion : group) completion(failure);
    }
  }

  const std::shared_ptr<Index> index_;
  std::mutex mutex_;
  /// A segment has an entry while a thread syncs it.
  std::map<uint64_t, std::vector<Completion>> waiting_;
};

}  // namespace maxsimd
