// Files: durable creation, growth that cannot run out of space later, errors by class.
#pragma once

#include "files/mapping.h"
#include "files/present_parts.h"

#include <cstdint>
#include <memory>
#include <string>

namespace maxsimd {

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

  /// From now on reads of what has not come throw `AbsentParts`; mappings know nothing of it.
  void isBeingFetched(std::shared_ptr<PresentParts> parts) { parts_ = std::move(parts); }
  /// Null if the file is whole.
  PresentParts* parts() const { return parts_.get(); }

 private:
  File(int descriptor, std::string path);

  int descriptor_;
  std::string path_;
  std::shared_ptr<PresentParts> parts_;
};

/// Makes the creation, renaming or removal of `path` durable.
void syncDirectoryOf(const std::string& path);

}  // namespace maxsimd
