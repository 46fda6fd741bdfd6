// A disk that tests can fill, make read-only, make unreadable and cut the power of: loaded into a process before the C library, it stands
// in front of the calls that change files below one directory.
//
// Environment:
//   DISK_SHIM_ROOT   the directory
//   DISK_SHIM_STATE  a file of four 64-bit integers, shared by all processes and the test: how many bytes are free
//                    (files may grow by so much; negative: no bound), whether the disk is read-only, and which bytes
//                    of each segment `pread` fails to read: the first, and the one behind the last
//   DISK_SHIM_SYNCED where a copy of each file is put when it is synced: what a power cut is sure to leave. That a file
//                    is removed is taken to be durable at once
//
// A file takes the bytes of its length. What is written through a mapping is not bounded.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

namespace {

struct State {
  std::atomic<int64_t> freeBytes;
  std::atomic<int64_t> readOnly;
  std::atomic<int64_t> unreadFirst;
  std::atomic<int64_t> unreadEnd;
};

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

State* state() {
  static State* const mapped = [] {
    const int fd = real<int(const char*, int, ...)>("open")(getenv("DISK_SHIM_STATE"), O_RDWR | O_CLOEXEC);
    void* memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return static_cast<State*>(memory);
  }();
  return mapped;
}

const std::string& root() {
  static const std::string path = std::string(getenv("DISK_SHIM_ROOT"));
  return path;
}

bool isInside(const std::string& path) {
  return path.size() > root().size() && path.compare(0, root().size(), root()) == 0 && path[root().size()] == '/';
}

std::string pathOf(int fd) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  return length < 0 ? std::string() : std::string(path, static_cast<size_t>(length));
}

/// Absolute paths are all that the service uses.
bool isInside(const char* path) { return path != nullptr && isInside(std::string(path)); }

std::string syncedCopyOf(const std::string& path) {
  std::string name = path.substr(root().size() + 1);
  std::replace(name.begin(), name.end(), '/', '%');
  return std::string(getenv("DISK_SHIM_SYNCED")) + "/" + name;
}

/// Takes up to `bytes` of what is free; returns how many.
int64_t take(int64_t bytes) {
  int64_t free = state()->freeBytes.load();
  int64_t taken;
  do {
    if (free < 0) return bytes;
    taken = std::min(free, bytes);
  } while (!state()->freeBytes.compare_exchange_weak(free, free - taken));
  return taken;
}

void give(int64_t bytes) {
  if (state()->freeBytes.load() >= 0) state()->freeBytes += bytes;
}

/// How many of `bytes` may be written at `offset`; -1 and errno for none.
ssize_t allow(int fd, size_t bytes, int64_t offset) {
  if (!isInside(pathOf(fd))) return static_cast<ssize_t>(bytes);
  if (state()->readOnly != 0) {
    errno = EROFS;
    return -1;
  }
  struct stat found;
  if (fstat(fd, &found) != 0) return -1;
  const int64_t end = offset + static_cast<int64_t>(bytes);
  const int64_t growth = std::max<int64_t>(0, end - std::max<int64_t>(offset, found.st_size));
  const int64_t hole = std::max<int64_t>(0, offset - found.st_size);
  const int64_t taken = growth + hole == 0 ? 0 : take(growth + hole);
  if (taken == growth + hole) return static_cast<ssize_t>(bytes);
  const int64_t fits = static_cast<int64_t>(bytes) - (growth + hole - taken);
  if (fits > 0) return static_cast<ssize_t>(fits);
  give(taken);
  errno = ENOSPC;
  return -1;
}

int resize(int fd, int64_t length, int (*call)(int, off_t)) {
  if (isInside(pathOf(fd))) {
    if (state()->readOnly != 0) {
      errno = EROFS;
      return -1;
    }
    struct stat found;
    if (fstat(fd, &found) != 0) return -1;
    const int64_t growth = length - found.st_size;
    if (growth > 0) {
      const int64_t taken = take(growth);
      if (taken < growth) {
        give(taken);
        errno = ENOSPC;
        return -1;
      }
    } else {
      give(-growth);
    }
  }
  return call(fd, length);
}

int remove(const char* path, int (*call)(const char*)) {
  int64_t length = 0;
  if (isInside(path)) {
    if (state()->readOnly != 0) {
      errno = EROFS;
      return -1;
    }
    struct stat found;
    if (stat(path, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 1) length = found.st_size;
  }
  const int result = call(path);
  if (result == 0) {
    give(length);
    if (isInside(path) && getenv("DISK_SHIM_SYNCED") != nullptr) call(syncedCopyOf(path).c_str());
  }
  return result;
}

bool isRefused(const char* path, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  return writes && isInside(path) && state()->readOnly != 0;
}

int openFile(const char* name, const char* path, int flags, mode_t mode) {
  if (isRefused(path, flags)) {
    errno = EROFS;
    return -1;
  }
  struct stat found;
  const bool cuts = (flags & O_TRUNC) != 0 && isInside(path) && stat(path, &found) == 0;
  const int fd = real<int(const char*, int, ...)>(name)(path, flags, mode);
  if (fd >= 0 && cuts) give(found.st_size);
  return fd;
}

void keepSynced(int fd) {
  const std::string path = pathOf(fd);
  struct stat found;
  if (getenv("DISK_SHIM_SYNCED") == nullptr || !isInside(path)) return;
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) return;
  const std::string target = syncedCopyOf(path);
  const std::string temporary = target + "." + std::to_string(fd) + ".new";
  const int from = real<int(const char*, int, ...)>("open")(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int to = real<int(const char*, int, ...)>("open")(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  char buffer[1 << 16];
  for (ssize_t bytes; (bytes = read(from, buffer, sizeof buffer)) > 0;) {
    if (real<ssize_t(int, const void*, size_t)>("write")(to, buffer, static_cast<size_t>(bytes)) != bytes) abort();
  }
  close(from);
  close(to);
  if (rename(temporary.c_str(), target.c_str()) != 0) abort();
}

int sync(int fd, const char* name) {
  const int result = real<int(int)>(name)(fd);
  if (result == 0) keepSynced(fd);
  return result;
}

int report(struct statfs* found, int result) {
  const int64_t free = state()->freeBytes;
  if (result == 0 && free >= 0) {
    found->f_bavail = found->f_bfree = static_cast<fsblkcnt_t>(free / found->f_bsize);
  }
  return result;
}

ssize_t writeAt(const char* name, int fd, const void* bytes, size_t count, off_t offset) {
  const ssize_t allowed = allow(fd, count, offset);
  if (allowed < 0) return -1;
  return real<ssize_t(int, const void*, size_t, off_t)>(name)(fd, bytes, static_cast<size_t>(allowed), offset);
}

ssize_t readAt(const char* name, int fd, void* bytes, size_t count, off_t offset) {
  if (offset < state()->unreadEnd && offset + static_cast<off_t>(count) > state()->unreadFirst) {
    const std::string path = pathOf(fd);
    if (isInside(path) && path.ends_with(".seg")) {
      errno = EIO;
      return -1;
    }
  }
  return real<ssize_t(int, void*, size_t, off_t)>(name)(fd, bytes, count, offset);
}

}  // namespace

extern "C" {

ssize_t pread(int fd, void* bytes, size_t count, off_t offset) { return readAt("pread", fd, bytes, count, offset); }
ssize_t pread64(int fd, void* bytes, size_t count, off_t offset) {
  return readAt("pread64", fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return writeAt("pwrite", fd, bytes, count, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) {
  return writeAt("pwrite64", fd, bytes, count, offset);
}
ssize_t write(int fd, const void* bytes, size_t count) {
  const off_t offset = lseek(fd, 0, SEEK_CUR);
  const ssize_t allowed = offset < 0 ? static_cast<ssize_t>(count) : allow(fd, count, offset);
  if (allowed < 0) return -1;
  return real<ssize_t(int, const void*, size_t)>("write")(fd, bytes, static_cast<size_t>(allowed));
}

int ftruncate(int fd, off_t length) noexcept { return resize(fd, length, real<int(int, off_t)>("ftruncate")); }
int ftruncate64(int fd, off_t length) noexcept { return resize(fd, length, real<int(int, off_t)>("ftruncate64")); }
int unlink(const char* path) noexcept { return remove(path, real<int(const char*)>("unlink")); }

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return openFile("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return openFile("open64", path, flags, mode);
}

int access(const char* path, int mode) noexcept {
  if ((mode & W_OK) != 0 && state()->readOnly != 0 && (isInside(path) || root() == path)) {
    errno = EROFS;
    return -1;
  }
  return real<int(const char*, int)>("access")(path, mode);
}

int fsync(int fd) { return sync(fd, "fsync"); }
int fdatasync(int fd) { return sync(fd, "fdatasync"); }
int statfs(const char* path, struct statfs* found) noexcept {
  return report(found, real<int(const char*, struct statfs*)>("statfs")(path, found));
}
int statfs64(const char* path, struct statfs64* found) noexcept {
  return report(reinterpret_cast<struct statfs*>(found),
                real<int(const char*, struct statfs64*)>("statfs64")(path, found));
}

}  // extern "C"
