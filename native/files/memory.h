// What the process keeps in memory for its indexes, and the bound of that.
//
// Directories, codebooks and what builds work with are taken: beyond the bound whoever asks for more is refused. Codes are
// files in the page cache, of which as much is held there (locked) as the bound leaves room for; what is taken comes first,
// and codes that lose their place are read like rows, whenever the page cache has let go of them. Buffers of single searches
// do not count: they are bounded by the number of searches at a time.
#pragma once

#include "files/mapping.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace maxsimd {

struct MemoryUse {
  uint64_t most, taken;
  /// Bytes of codes, and those of them that the page cache may not let go of.
  uint64_t codes, held;
};

/// One for the process: what the system locks, and ends processes for, is counted by process.
class Memory {
 public:
  static Memory& ofProcess();

  void bound(uint64_t most);
  /// `no_memory` if there is no room for it.
  void take(uint64_t bytes);
  void giveBack(uint64_t bytes);
  /// Holds the mapping as long as there is room, until `letGo`.
  void hold(const Mapping& mapping);
  void letGo(const Mapping& mapping);
  MemoryUse use() const;

 private:
  struct Codes {
    const Mapping* mapping;
    bool held;
    /// There is no room for it.
    bool scattered;
  };

  /// Holds what there is room for, and nothing that there is not.
  void settle();

  mutable std::mutex mutex_;
  uint64_t most_ = UINT64_MAX;
  uint64_t taken_ = 0, held_ = 0;
  std::vector<Codes> codes_;
};

/// Memory that is taken until this goes.
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
