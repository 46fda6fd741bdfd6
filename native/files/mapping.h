// A read-only mapping of a file whose bytes may fail to come.
//
// Where the disk cannot give a page, or the file has become shorter, the kernel answers a read with SIGBUS. A handler,
// installed with the first mapping, finds the mapping that the address belongs to, marks it as failed and puts zeros in
// its place, all of it at once; the reader goes on with zeros. A fault anywhere else goes to whoever handled it before.
//
// So two things hold for all that read a mapping. Nothing that came of it may be used before `failure` was asked, after
// the last read. And a value read twice may differ: sizes and offsets are copied out of the mapping, or bounded at each
// use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace maxsimd {

struct MappingSlot;

/// Maps the first `bytes` bytes of a file; shared with the page cache. Readers keep it alive.
class Mapping {
 public:
  Mapping(int descriptor, uint64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  std::span<const uint8_t> whole() const { return {base_, bytes_}; }

  /// Where the first read failed that did, counted from the base; the mapping holds zeros since then.
  std::optional<uint64_t> failure() const;
  /// Whether reads go here and there: a fault then brings in its page, and nothing around it takes the place of others.
  void expectScattered(bool scattered) const;
  /// Pages stay in memory once they are there, until `unlock`, in large ones where the system has them. False if it does
  /// not allow it.
  bool lock() const;
  void unlock() const;
  /// Lets go of the pages around [offset, offset + bytes), so that the page cache may drop them.
  void release(uint64_t offset, uint64_t bytes) const;

 private:
  MappingSlot* slot_;
  const uint8_t* base_ = nullptr;
  uint64_t bytes_;
};

/// The pages that lie in [offset, offset + bytes), whole.
struct PageRange {
  uint64_t offset, bytes;
  PageRange(uint64_t offset, uint64_t bytes);
};

}  // namespace maxsimd
