// Files and read-only mappings: durable creation, growth without SIGBUS, errors by class.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace maxsimd {

/// A read-only shared mapping of the first `bytes` bytes of a file; readers keep it alive.
class Mapping {
 public:
  Mapping(int descriptor, uint64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  std::span<const uint8_t> whole() const { return {base_, bytes_}; }

 private:
  const uint8_t* base_;
  uint64_t bytes_;
};

class File {
 public:
  /// Fails if the file exists. The directory entry is durable after `syncDirectory`.
  static File create(const std::string& path);
  static File openExisting(const std::string& path);
  static File openReadOnly(const std::string& path);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  uint64_t size() const;
  void write(uint64_t offset, const void* data, uint64_t bytes);
  void read(uint64_t offset, void* data, uint64_t bytes) const;
  /// Allocates the blocks of [0, bytes): writing there cannot run out of space later.
  void allocate(uint64_t bytes);
  void truncate(uint64_t bytes);
  void sync();
  std::shared_ptr<const Mapping> map(uint64_t bytes) const;
  /// The page cache may drop what lies there, but for pages that a mapping is using.
  void forget(uint64_t offset, uint64_t bytes) const;
  const std::string& path() const { return path_; }

 private:
  File(int descriptor, std::string path);

  int descriptor_;
  std::string path_;
};

/// Makes the creation, renaming or removal of `path` durable.
void syncDirectoryOf(const std::string& path);

}  // namespace maxsimd
