// Files with durable creation, growth that cannot run out of space later, and classed errors (error.h).
#pragma once

#include "files/mapping.h"
#include "files/present_parts.h"

#include <cstdint>
#include <memory>
#include <string>

namespace maxsimd {

class File {
 public:
  /// Fails if the file exists. The directory entry is durable after `syncDirectoryOf`.
  static File create(const std::string& path);
  static File openExisting(const std::string& path);
  static File openReadOnly(const std::string& path);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  uint64_t size() const;
  void write(uint64_t offset, const void* data, uint64_t bytes);
  void read(uint64_t offset, void* data, uint64_t bytes) const;
  /// Allocates the blocks of [0, bytes), so that writing there cannot run out of space.
  void allocate(uint64_t bytes);
  void truncate(uint64_t bytes);
  void sync();
  std::shared_ptr<const Mapping> map(uint64_t bytes) const;
  /// Tells the page cache to drop these bytes. Pages that a mapping uses stay.
  void forget(uint64_t offset, uint64_t bytes) const;
  const std::string& path() const { return path_; }

  /// The file is still being fetched: `read` throws `AbsentParts` for missing bytes. Mappings do not check.
  void isBeingFetched(std::shared_ptr<PresentParts> parts) { parts_ = std::move(parts); }
  /// Null if the file is complete.
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
