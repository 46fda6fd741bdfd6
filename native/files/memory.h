// The memory that the process uses for its indexes, its bound, and the tenants that use it.
//
// Directories, codebooks, graphs, columns and builds take memory. Codes are files in the page cache. As many of them are
// locked there as the rest of the bound allows. Codes that lose their place are read like rows, through the page cache.
// Buffers of single searches do not count: the number of concurrent searches bounds them.
//
// Everything taken is on the account of a tenant. The share of a tenant is the bound divided by the number of tenants
// with an open index, so a tenant that is alone may have everything. Within its share a tenant always gets what it asks
// for. When that passes the bound, another tenant is above its share, and the service closes that tenant's indexes soon.
//
// Columns and graphs can be made again. They go first when room is needed: columns before graphs, each time from the
// tenant that uses most, and never from one that uses less than the tenant that asks.
#pragma once

#include "files/mapping.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// A tenant that has memory, or may take some. It lives as long as one of its indexes is open.
class MemoryAccount : public std::enable_shared_from_this<MemoryAccount> {
 public:
  explicit MemoryAccount(std::string owner) : owner(std::move(owner)) {}
  ~MemoryAccount();
  MemoryAccount(const MemoryAccount&) = delete;

  /// The tenant's id; empty for tools.
  const std::string owner;

 private:
  friend class Memory;
  /// Guarded by the mutex of `Memory`.
  uint64_t taken_ = 0;
};

using MemoryOwner = std::shared_ptr<MemoryAccount>;

/// The index and the columns for which room is made.
struct MemoryNeed {
  const void* index = nullptr;
  std::span<const std::string> columns;
};

/// Something that can be made again. Its memory is taken back when room is needed.
class Reclaimable {
 public:
  explicit Reclaimable(MemoryOwner owner) : owner(std::move(owner)) {}
  virtual ~Reclaimable() = default;

  virtual uint64_t reclaimableBytes() const = 0;
  /// Gives its memory back, except what `need` names. Called without any lock of `Memory`, by any thread.
  virtual void reclaim(const MemoryNeed& need) = 0;

  const MemoryOwner owner;
};

/// In the order in which they are taken back.
enum class ReclaimOrder : uint8_t { columns, graphs };

struct MemoryUse {
  uint64_t most, taken;
  /// Bytes of codes, and how many of them are locked in memory.
  uint64_t codes, held;
};

/// One for the process, because the system limits memory and locks by process.
class Memory {
 public:
  static Memory& ofProcess();

  void bound(uint64_t most);
  /// The account of a tenant; a new one if the tenant has none.
  MemoryOwner accountOf(const std::string& owner);
  /// From now on its memory may be taken back.
  void offer(ReclaimOrder order, const std::shared_ptr<Reclaimable>& reclaimable);
  /// Makes room. `no_memory` if there is none and the account is above its share.
  void take(MemoryAccount& account, uint64_t bytes);
  /// Takes even beyond the bound. The caller must call `makeRoom` afterwards.
  void count(MemoryAccount& account, uint64_t bytes);
  /// Makes room until the bound is kept. False if it is passed and the account is above its share.
  bool makeRoom(const MemoryAccount& account, const MemoryNeed& need);
  void giveBack(MemoryAccount& account, uint64_t bytes);
  /// Locks the mapping in memory while there is room, until `letGo`.
  void hold(const Mapping& mapping);
  void letGo(const Mapping& mapping);
  MemoryUse use() const;
  struct AccountUse {
    std::string owner;
    uint64_t taken;
  };
  std::vector<AccountUse> accounts() const;

 private:
  friend class MemoryAccount;
  struct Codes {
    const Mapping* mapping;
    bool held;
    /// There is no room to lock it.
    bool scattered;
  };
  struct Offer {
    ReclaimOrder order;
    std::weak_ptr<Reclaimable> reclaimable;
  };
  struct Candidate {
    ReclaimOrder order;
    std::shared_ptr<Reclaimable> reclaimable;
    bool isTried;
  };

  void end(const MemoryAccount& account);
  uint64_t share() const { return most_ / std::max<size_t>(1, accounts_.size()); }
  bool fits(uint64_t bytes) const { return taken_ <= most_ && bytes <= most_ - taken_; }
  /// `lock` is released while something gives its memory back.
  bool makeRoom(std::unique_lock<std::mutex>& lock, const MemoryAccount& account, uint64_t bytes,
                const MemoryNeed& need);
  std::vector<Candidate> candidates() const;
  /// The one that gives its memory back first; null = none does.
  Candidate* firstOf(std::vector<Candidate>& candidates, const MemoryAccount& account, uint64_t bytes) const;
  /// Locks what there is room for and unlocks the rest.
  void settle();

  mutable std::mutex mutex_;
  uint64_t most_ = UINT64_MAX;
  uint64_t taken_ = 0, held_ = 0;
  std::vector<Codes> codes_;
  std::vector<MemoryAccount*> accounts_;
  std::vector<Offer> offers_;
};

/// The account of tools and tests, which have no tenant.
inline MemoryOwner nobody() { return Memory::ofProcess().accountOf(""); }

/// Memory on an account, given back when this is destroyed.
class MemoryShare {
 public:
  explicit MemoryShare(MemoryOwner owner, uint64_t bytes = 0) : owner_(std::move(owner)) { resize(bytes); }
  ~MemoryShare() { giveBackBeyond(0); }
  MemoryShare(MemoryShare&& other) noexcept : owner_(other.owner_), bytes_(other.bytes_.exchange(0)) {}
  MemoryShare& operator=(MemoryShare&&) = delete;

  uint64_t bytes() const { return bytes_; }
  /// As `Memory::take`.
  void resize(uint64_t bytes) {
    if (bytes > bytes_) Memory::ofProcess().take(*owner_, bytes - bytes_);
    else giveBackBeyond(bytes);
    bytes_ = bytes;
  }
  /// As `Memory::count`.
  void count(uint64_t bytes) {
    if (bytes > bytes_) Memory::ofProcess().count(*owner_, bytes - bytes_);
    else giveBackBeyond(bytes);
    bytes_ = bytes;
  }

 private:
  void giveBackBeyond(uint64_t bytes) {
    if (bytes < bytes_) Memory::ofProcess().giveBack(*owner_, bytes_ - bytes);
  }

  MemoryOwner owner_;
  /// Changed by one thread at a time, and read by any.
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace maxsimd
