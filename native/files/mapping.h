// A read-only mapping of a file whose pages may fail to load.
//
// If the disk cannot give a page, or the file has become shorter, the operating system answers the read with SIGBUS. A
// handler, installed with the first mapping, finds the mapping by the address, marks it as failed and replaces all of
// it by zeros. The reader goes on and reads zeros. Faults at other addresses go to the handler that was installed
// before.
//
// So every reader of a mapping keeps two rules. Use nothing that came from it before `failure` was asked after the last
// read. And copy sizes and offsets out of the mapping, or check them at each use, because a value that is read twice
// may differ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace maxsimd {

struct MappingSlot;

/// Maps the first `bytes` bytes of a file, shared with the page cache. Readers keep it alive.
class Mapping {
 public:
  Mapping(int descriptor, uint64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  std::span<const uint8_t> whole() const { return {base_, bytes_}; }

  /// Offset of the first read that failed; `nullopt` if none did. Since then the mapping holds zeros.
  std::optional<uint64_t> failure() const;
  /// True: reads are scattered. A fault then loads one page and no neighbours.
  void expectScattered(bool scattered) const;
  /// Keeps pages in memory once they are read, until `unlock`, as large pages where the system has them. False if the
  /// system does not allow it.
  bool lock() const;
  void unlock() const;
  /// Gives up the pages around [offset, offset + bytes), so that the page cache may drop them.
  void release(uint64_t offset, uint64_t bytes) const;

 private:
  MappingSlot* slot_;
  const uint8_t* base_ = nullptr;
  uint64_t bytes_;
};

/// The whole pages that hold [offset, offset + length).
struct PageRange {
  uint64_t offset, bytes;
  PageRange(uint64_t offset, uint64_t bytes);
};

}  // namespace maxsimd
