// The memory that the process uses for its indexes, and its bound.
//
// Directories, codebooks and builds take memory. Beyond the bound a request for more is refused. Codes are files in the
// page cache. As many of them are locked there as the rest of the bound allows. Codes that lose their place are read
// like rows, through the page cache. Buffers of single searches do not count: the number of concurrent searches bounds
// them.
#pragma once

#include "files/mapping.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace maxsimd {

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
  /// `no_memory` if there is no room for it.
  void take(uint64_t bytes);
  void giveBack(uint64_t bytes);
  /// Locks the mapping in memory while there is room, until `letGo`.
  void hold(const Mapping& mapping);
  void letGo(const Mapping& mapping);
  MemoryUse use() const;

 private:
  struct Codes {
    const Mapping* mapping;
    bool held;
    /// There is no room to lock it.
    bool scattered;
  };

  /// Locks what there is room for and unlocks the rest.
  void settle();

  mutable std::mutex mutex_;
  uint64_t most_ = UINT64_MAX;
  uint64_t taken_ = 0, held_ = 0;
  std::vector<Codes> codes_;
};

/// A share of the bound, given back when this is destroyed.
class MemoryShare {
 public:
  MemoryShare() = default;
  explicit MemoryShare(uint64_t bytes) { resize(bytes); }
  ~MemoryShare() { resize(0); }
  MemoryShare(MemoryShare&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = 0; }
  MemoryShare& operator=(MemoryShare&&) = delete;

  /// As `Memory::take`.
  void resize(uint64_t bytes) {
    if (bytes > bytes_) Memory::ofProcess().take(bytes - bytes_);
    if (bytes < bytes_) Memory::ofProcess().giveBack(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  uint64_t bytes_ = 0;
};

}  // namespace maxsimd
