#include "files/file.h"

#include "files/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace maxsimd {

File::File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      parts_(std::move(other.parts_)) {}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

File File::create(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) throw Error::fromErrno("create " + path);
  return File(descriptor, path);
}

File File::openExisting(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) throw Error::fromErrno("open " + path);
  return File(descriptor, path);
}

File File::openReadOnly(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error::fromErrno("open " + path);
  return File(descriptor, path);
}

uint64_t File::size() const {
  struct stat status{};
  if (fstat(descriptor_, &status) != 0) throw Error::fromErrno("stat " + path_);
  return uint64_t(status.st_size);
}

void File::write(uint64_t offset, const void* data, uint64_t bytes) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(descriptor_, from, bytes, off_t(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error::fromErrno("write " + path_);
    from += written;
    offset += uint64_t(written);
    bytes -= uint64_t(written);
  }
}

void File::read(uint64_t offset, void* data, uint64_t bytes) const {
  if (parts_ != nullptr) parts_->require(offset, bytes);
  auto* to = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t got = pread(descriptor_, to, bytes, off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error::fromErrno("read " + path_);
    if (got == 0) throw Error(ErrorCode::corrupt, path_ + ": shorter than expected");
    to += got;
    offset += uint64_t(got);
    bytes -= uint64_t(got);
  }
}

void File::allocate(uint64_t bytes) {
#if defined(__linux__)
  int result;
  do {
    result = fallocate(descriptor_, 0, 0, off_t(bytes)) == 0 ? 0 : errno;
  } while (result == EINTR);
  // For file systems without it (NFSv3, some overlays) the C library writes into every block.
  if (result == EOPNOTSUPP || result == ENOSYS) result = posix_fallocate(descriptor_, 0, off_t(bytes));
  if (result != 0) throw Error::fromErrno("allocate " + path_, result);
#else
  if (size() < bytes) truncate(bytes);
#endif
}

void File::truncate(uint64_t bytes) {
  if (ftruncate(descriptor_, off_t(bytes)) != 0) throw Error::fromErrno("truncate " + path_);
}

void File::sync() {
#if defined(__APPLE__)
  const int result = fcntl(descriptor_, F_FULLFSYNC);
#else
  const int result = fdatasync(descriptor_);
#endif
  if (result != 0) throw Error::fromErrno("sync " + path_);
}

void File::forget([[maybe_unused]] uint64_t offset, [[maybe_unused]] uint64_t bytes) const {
#if defined(__linux__)
  const PageRange pages(offset, bytes);
  posix_fadvise(descriptor_, off_t(pages.offset), off_t(pages.bytes), POSIX_FADV_DONTNEED);
#endif
}

std::shared_ptr<const Mapping> File::map(uint64_t bytes) const {
  return std::make_shared<const Mapping>(descriptor_, bytes);
}

void syncDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw Error::fromErrno("open " + directory);
  const int result = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (result != 0) throw Error::fromErrno("sync " + directory, result);
}

}  // namespace maxsimd
