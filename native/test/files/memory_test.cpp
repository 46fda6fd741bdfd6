#include "files/memory.h"

#include "files/error.h"
#include "test/check.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace maxsimd::test {
namespace {

/// Bounds the memory for one case. Nothing else has memory meanwhile.
struct Bound {
  explicit Bound(uint64_t most) { Memory::ofProcess().bound(most); }
  ~Bound() { Memory::ofProcess().bound(UINT64_MAX); }
};

MemoryOwner tenant(const std::string& name) { return Memory::ofProcess().accountOf(name); }

/// Something of an index that can be made again.
class Made : public Reclaimable {
 public:
  Made(MemoryOwner owner, uint64_t bytes, std::vector<const Made*>* reclaimed = nullptr)
      : Reclaimable(owner), memory_(std::move(owner)), reclaimed_(reclaimed) {
    memory_.count(bytes);
  }

  uint64_t reclaimableBytes() const override { return memory_.bytes(); }
  void reclaim(const MemoryNeed&) override {
    const std::lock_guard lock(mutex_);
    memory_.count(0);
    if (reclaimed_ != nullptr) reclaimed_->push_back(this);
  }

 private:
  std::mutex mutex_;
  MemoryShare memory_;
  std::vector<const Made*>* const reclaimed_;
};

std::shared_ptr<Made> made(ReclaimOrder order, const MemoryOwner& owner, uint64_t bytes,
                           std::vector<const Made*>* reclaimed = nullptr) {
  auto result = std::make_shared<Made>(owner, bytes, reclaimed);
  Memory::ofProcess().offer(order, result);
  return result;
}

const Case sharesAreEqual("memory", "a tenant alone may have everything, and others have an equal share", [](Random&) {
  const Bound bound(1000);
  const MemoryOwner a = tenant("a");
  CHECK(tenant("a") == a);
  {
    const MemoryShare all(a, 1000);
    CHECK_ERROR(MemoryShare(a, 1), ErrorCode::noMemory);
    const MemoryOwner b = tenant("b");
    // The other is above its share. Then this one has its own, whatever the other does.
    const MemoryShare half(b, 500);
    CHECK(Memory::ofProcess().use().taken == 1500);
    CHECK_ERROR(MemoryShare(b, 1), ErrorCode::noMemory);
    CHECK_ERROR(MemoryShare(a, 1), ErrorCode::noMemory);
  }
  // The other has no open index any more.
  const MemoryShare all(a, 1000);
  CHECK(Memory::ofProcess().accounts().size() == 1);
});

const Case takenInOrder("memory", "columns go before graphs, each time from the tenant that uses most", [](Random&) {
  const Bound bound(900);
  const MemoryOwner a = tenant("a"), b = tenant("b"), c = tenant("c");
  std::vector<const Made*> reclaimed;
  const auto graphOfA = made(ReclaimOrder::graphs, a, 200, &reclaimed);
  const auto columnsOfA = made(ReclaimOrder::columns, a, 170, &reclaimed);
  const auto columnsOfB = made(ReclaimOrder::columns, b, 360, &reclaimed);
  const auto columnsOfC = made(ReclaimOrder::columns, c, 100, &reclaimed);
  MemoryShare ofC(c), ofA(a);
  ofC.resize(70);
  CHECK(reclaimed.empty());
  // `a` has 370, `b` has 360, and a share is 300.
  ofC.resize(100);
  CHECK((reclaimed == std::vector<const Made*>{columnsOfA.get()}));
  // `a` would have 350 then, and `b` has more.
  ofA.resize(150);
  CHECK((reclaimed == std::vector<const Made*>{columnsOfA.get(), columnsOfB.get()}));
  // Nobody uses as much as `a` now, so it takes from itself alone. The columns of `c` stay.
  ofA.resize(700);
  CHECK((reclaimed == std::vector<const Made*>{columnsOfA.get(), columnsOfB.get(), graphOfA.get()}));
  CHECK_ERROR(ofA.resize(701), ErrorCode::noMemory);
  CHECK(columnsOfC->reclaimableBytes() == 100);
});

const Case refusedInVain("memory", "a refusal changes nothing, and room that comes back is used", [](Random&) {
  const Bound bound(100);
  const MemoryOwner a = tenant("a"), b = tenant("b");
  auto kept = std::make_unique<MemoryShare>(a, 90);
  MemoryShare grown(a, 10);
  CHECK_ERROR(grown.resize(20), ErrorCode::noMemory);
  CHECK(grown.bytes() == 10 && Memory::ofProcess().use().taken == 100);
  kept.reset();
  grown.resize(100);
});

const Case fromManyThreads("memory", "threads that take from each other end, and nothing is lost", [](Random& random) {
  const Bound bound(2000);
  const uint64_t seed = random();
  std::atomic<int> refused = 0, given = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random own(seed + uint64_t(t));
      for (int round = 0, most = rounds(300); round < most; ++round) {
        const MemoryOwner owner = tenant("tenant " + std::to_string(between(own, 0, 2)));
        const auto columns = made(ReclaimOrder::columns, owner, between(own, 0, 600));
        const auto graph = made(ReclaimOrder::graphs, owner, between(own, 0, 600));
        try {
          const MemoryShare share(owner, between(own, 1, 900));
          ++given;
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::noMemory);
          ++refused;
        }
        Memory::ofProcess().makeRoom(*owner, {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(given + refused == 4 * rounds(300));
  CHECK(Memory::ofProcess().use().taken == 0 && Memory::ofProcess().accounts().empty());
});

}  // namespace
}  // namespace maxsimd::test
