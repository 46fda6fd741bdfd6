// Simulates a disk that tests can fill, make read-only or unreadable, let fail, or cut the power of. This library is loaded
// into a process before the C library, and replaces the calls that change files below one directory.
//
// Environment:
//   DISK_SHIM_ROOT   the directory
//   DISK_SHIM_STATE  a file that holds a `DiskState`
//   DISK_SHIM_LOG    a file that gets a `LogEntry` for each call, in their order; syncs are logged and not made
//   DISK_SHIM_NOTES  a file; text that the process writes to it goes to the log as well
//
// A file takes as much space as its length. Writes through a mapping are not seen. Only SQLite's index of its log (`-shm`) is
// written in that way, and SQLite makes it anew after a crash.
#include "disk-shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>

namespace {

/// The time of a logged sync. It lets other threads write meanwhile.
constexpr useconds_t syncMicroseconds = 200;

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int realOpen(const char* path, int flags) { return real<int(const char*, int, ...)>("open")(path, flags, 0600); }

DiskState& state() {
  static DiskState* const mapped = [] {
    const int fd = realOpen(getenv("DISK_SHIM_STATE"), O_RDWR | O_CLOEXEC);
    void* memory = mmap(nullptr, sizeof(DiskState), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    real<int(int)>("close")(fd);
    return static_cast<DiskState*>(memory);
  }();
  return *mapped;
}

const std::string& root() {
  static const std::string path = std::string(getenv("DISK_SHIM_ROOT"));
  return path;
}

bool isInside(const std::string& path) {
  return path.size() > root().size() && path.compare(0, root().size(), root()) == 0 && path[root().size()] == '/';
}

/// Whether a path is on the disk. The service uses absolute paths only.
bool isInside(const char* path) { return path != nullptr && isInside(std::string(path)); }

bool isInsideOrRoot(const std::string& path) { return path == root() || isInside(path); }

std::string relative(const std::string& path) { return isInside(path) ? path.substr(root().size() + 1) : std::string(); }

std::string pathOf(int fd) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  return length < 0 ? std::string() : std::string(path, static_cast<size_t>(length));
}

uint64_t inodeOf(int fd) {
  struct stat found;
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

uint64_t inodeOf(const char* path) {
  struct stat found;
  return lstat(path, &found) == 0 ? found.st_ino : 0;
}

int logFile() {
  static const int fd = [] {
    const char* path = getenv("DISK_SHIM_LOG");
    return path == nullptr ? -1 : realOpen(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
  }();
  return fd;
}

/// Appends an entry by one call, so that the log ends with a whole entry whenever the process is killed.
void log(LogEntry::Kind kind, uint64_t inode, int64_t number, const void* payload = nullptr, size_t bytes = 0) {
  if (logFile() < 0) return;
  LogEntry entry{kind, static_cast<uint32_t>(bytes), inode, number};
  const iovec parts[] = {{&entry, sizeof entry}, {const_cast<void*>(payload), bytes}};
  const auto call = real<ssize_t(int, const iovec*, int)>("writev");
  if (call(logFile(), parts, 2) != static_cast<ssize_t>(sizeof entry + bytes)) abort();
}

void log(LogEntry::Kind kind, uint64_t inode, const std::string& text, int64_t number = 0) {
  log(kind, inode, number, text.data(), text.size());
}

/// Lets one call at a time change the disk, so that the log has the calls in their order.
std::lock_guard<std::mutex> turn() {
  static auto* const mutex = new std::mutex;
  return std::lock_guard(*mutex);
}

bool isRefused(LogEntry::Kind kind, const std::string& path) {
  const int64_t call = state().calls++;
  if (state().readOnly != 0 && kind != LogEntry::syncBegin) {
    errno = EROFS;
    return true;
  }
  if (call < state().failFirst || call >= state().failEnd) return false;
  if (state().failErrno == 0 && kind != LogEntry::write) return false;
  log(LogEntry::refused, 0, relative(path), kind);
  errno = static_cast<int>(state().failErrno);
  return true;
}

/// Takes up to `bytes` of the free space. Returns how many it got.
int64_t take(int64_t bytes) {
  int64_t free = state().freeBytes.load();
  int64_t taken;
  do {
    if (free < 0) return bytes;
    taken = std::min(free, bytes);
  } while (!state().freeBytes.compare_exchange_weak(free, free - taken));
  return taken;
}

void give(int64_t bytes) {
  if (state().freeBytes.load() >= 0) state().freeBytes += bytes;
}

bool takeAll(int64_t bytes) {
  const int64_t taken = take(bytes);
  if (taken == bytes) return true;
  give(taken);
  errno = ENOSPC;
  return false;
}

/// How many of `bytes` can be written at `offset`. If none can, -1 and errno.
ssize_t fitting(int fd, size_t bytes, int64_t offset) {
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

/// Logs a write. Of the file `reserve`, 8 MiB that nobody reads, only the length is logged.
void logWrite(int fd, const std::string& path, off_t offset, const void* bytes, size_t count) {
  struct stat found;
  if (!path.ends_with("/reserve")) log(LogEntry::write, inodeOf(fd), offset, bytes, count);
  else if (fstat(fd, &found) == 0) log(LogEntry::resize, found.st_ino, found.st_size);
}

ssize_t writeAt(int fd, const void* bytes, size_t count, off_t offset) {
  const auto call = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const std::string path = pathOf(fd);
  if (!isInside(path)) return call(fd, bytes, count, offset);
  const auto lock = turn();
  if (isRefused(LogEntry::write, path)) return errno == 0 ? static_cast<ssize_t>(count) : -1;
  const ssize_t fits = fitting(fd, count, offset);
  if (fits < 0) return -1;
  const ssize_t written = call(fd, bytes, static_cast<size_t>(fits), offset);
  if (written > 0) logWrite(fd, path, offset, bytes, static_cast<size_t>(written));
  return written;
}

bool isNotes(const std::string& path) {
  static const char* const notes = getenv("DISK_SHIM_NOTES");
  return notes != nullptr && path == notes;
}

ssize_t writeOn(int fd, const void* bytes, size_t count) {
  const auto call = real<ssize_t(int, const void*, size_t)>("write");
  off_t offset = lseek(fd, 0, SEEK_CUR);
  if (offset < 0) return call(fd, bytes, count);
  const std::string path = pathOf(fd);
  if (isNotes(path)) {
    const auto lock = turn();
    log(LogEntry::note, 0, 0, bytes, count);
    return call(fd, bytes, count);
  }
  if (!isInside(path)) return call(fd, bytes, count);
  struct stat found;
  if ((fcntl(fd, F_GETFL) & O_APPEND) != 0 && fstat(fd, &found) == 0) offset = found.st_size;
  const ssize_t written = writeAt(fd, bytes, count, offset);
  if (written > 0) lseek(fd, offset + written, SEEK_SET);
  return written;
}

std::string gathered(const iovec* parts, int count) {
  std::string all;
  for (int part = 0; part < count; ++part) all.append(static_cast<const char*>(parts[part].iov_base), parts[part].iov_len);
  return all;
}

ssize_t readAt(const char* name, int fd, void* bytes, size_t count, off_t offset) {
  if (offset < state().unreadEnd && offset + static_cast<off_t>(count) > state().unreadFirst) {
    const std::string path = pathOf(fd);
    if (isInside(path) && path.ends_with(".seg")) {
      errno = EIO;
      return -1;
    }
  }
  return real<ssize_t(int, void*, size_t, off_t)>(name)(fd, bytes, count, offset);
}

/// Changes the length of a file by `call`.
template <typename Call>
int resize(int fd, Call call) {
  const std::string path = pathOf(fd);
  if (!isInside(path)) return call();
  const auto lock = turn();
  if (isRefused(LogEntry::resize, path)) return -1;
  struct stat before, after;
  if (fstat(fd, &before) != 0 || call() != 0 || fstat(fd, &after) != 0) return -1;
  const int64_t growth = after.st_size - before.st_size;
  if (growth > 0 && !takeAll(growth)) {
    real<int(int, off_t)>("ftruncate")(fd, before.st_size);
    errno = ENOSPC;
    return -1;
  }
  if (growth < 0) give(-growth);
  if (growth != 0) log(LogEntry::resize, after.st_ino, after.st_size);
  return 0;
}

int removeEntry(const char* path, int (*call)(const char*)) {
  if (!isInside(path)) return call(path);
  const auto lock = turn();
  struct stat found;
  if (lstat(path, &found) != 0) return call(path);
  if (isRefused(LogEntry::remove, path)) return -1;
  const int result = call(path);
  if (result != 0) return result;
  if (S_ISREG(found.st_mode) && found.st_nlink == 1) give(found.st_size);
  log(LogEntry::remove, 0, relative(path));
  return 0;
}

int moveEntry(LogEntry::Kind kind, const char* from, const char* to, int (*call)(const char*, const char*)) {
  if (!isInside(to)) return call(from, to);
  const auto lock = turn();
  if (isRefused(kind, to)) return -1;
  const int result = call(from, to);
  if (result == 0) log(kind, 0, relative(from) + '\0' + relative(to));
  return result;
}

int openFile(const char* name, const char* path, int flags, mode_t mode) {
  const auto call = real<int(const char*, int, ...)>(name);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  if (!writes || !isInside(path)) return call(path, flags, mode);
  const auto lock = turn();
  struct stat found;
  const bool there = lstat(path, &found) == 0;
  const bool creates = !there && (flags & O_CREAT) != 0;
  const bool cuts = there && (flags & (O_TRUNC | O_EXCL)) == O_TRUNC && found.st_size > 0;
  if (creates || cuts) {
    if (isRefused(creates ? LogEntry::create : LogEntry::resize, path)) return -1;
  } else if (state().readOnly != 0) {
    errno = EROFS;
    return -1;
  }
  const int fd = call(path, flags, mode);
  if (fd < 0) return fd;
  if (cuts) {
    give(found.st_size);
    log(LogEntry::resize, found.st_ino, 0);
  }
  if (creates) log(LogEntry::create, inodeOf(fd), relative(path));
  return fd;
}

/// Whether `kinds` has the bit for this kind of file.
bool isAmong(int64_t kinds, const std::string& path) {
  static const char* const endings[] = {".seg", "catalog.db-wal", "catalog.db", "usage.db-wal", "usage.db", ".tmp"};
  struct stat found;
  const bool isDirectory = stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  if (isDirectory) return (kinds & 1) != 0;
  for (int kind = 0; kind < int(std::size(endings)); ++kind) {
    if (path.ends_with(endings[kind])) return (kinds >> (kind + 1) & 1) != 0;
  }
  return false;
}

int sync(int fd, const char* name) {
  static std::atomic<int64_t> syncs{0};
  const std::string path = pathOf(fd);
  if (!isInsideOrRoot(path)) return real<int(int)>(name)(fd);
  const int64_t number = ++syncs;
  const uint64_t inode = inodeOf(fd);
  {
    const auto lock = turn();
    const bool fails = isAmong(state().failedSyncs, path);
    if (fails) errno = EIO;
    if (fails || isRefused(LogEntry::syncBegin, path)) {
      log(LogEntry::syncFailed, inode, number);
      return -1;
    }
    if (isAmong(state().lostSyncs, path)) return 0;
    log(LogEntry::syncBegin, inode, number);
  }
  if (logFile() < 0) return real<int(int)>(name)(fd);
  usleep(syncMicroseconds);
  const auto lock = turn();
  log(LogEntry::syncEnd, inode, number);
  return 0;
}

int report(struct statfs* found, int result) {
  const int64_t free = state().freeBytes;
  if (result == 0 && free >= 0) {
    found->f_bavail = found->f_bfree = static_cast<fsblkcnt_t>(free / found->f_bsize);
  }
  return result;
}

}  // namespace

extern "C" {

ssize_t pread(int fd, void* bytes, size_t count, off_t offset) { return readAt("pread", fd, bytes, count, offset); }
ssize_t pread64(int fd, void* bytes, size_t count, off_t offset) {
  return readAt("pread64", fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) { return writeAt(fd, bytes, count, offset); }
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) { return writeAt(fd, bytes, count, offset); }
ssize_t write(int fd, const void* bytes, size_t count) { return writeOn(fd, bytes, count); }
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  const std::string all = gathered(parts, count);
  return writeAt(fd, all.data(), all.size(), offset);
}
ssize_t pwritev64(int fd, const iovec* parts, int count, off_t offset) { return pwritev(fd, parts, count, offset); }
ssize_t writev(int fd, const iovec* parts, int count) {
  if (!isInside(pathOf(fd))) return real<ssize_t(int, const iovec*, int)>("writev")(fd, parts, count);
  const std::string all = gathered(parts, count);
  return writeOn(fd, all.data(), all.size());
}

int ftruncate(int fd, off_t length) noexcept {
  return resize(fd, [&] { return real<int(int, off_t)>("ftruncate")(fd, length); });
}
int ftruncate64(int fd, off_t length) noexcept { return ftruncate(fd, length); }
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return resize(fd, [&] { return real<int(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, length); });
}
int fallocate64(int fd, int mode, off_t offset, off_t length) { return fallocate(fd, mode, offset, length); }

int unlink(const char* path) noexcept { return removeEntry(path, real<int(const char*)>("unlink")); }
int rmdir(const char* path) noexcept { return removeEntry(path, real<int(const char*)>("rmdir")); }
int rename(const char* from, const char* to) noexcept {
  return moveEntry(LogEntry::rename, from, to, real<int(const char*, const char*)>("rename"));
}
int link(const char* from, const char* to) noexcept {
  return moveEntry(LogEntry::link, from, to, real<int(const char*, const char*)>("link"));
}
int mkdir(const char* path, mode_t mode) noexcept {
  const auto call = real<int(const char*, mode_t)>("mkdir");
  if (!isInside(path) || inodeOf(path) != 0) return call(path, mode);
  const auto lock = turn();
  if (isRefused(LogEntry::mkdir, path)) return -1;
  const int result = call(path, mode);
  if (result == 0) log(LogEntry::mkdir, inodeOf(path), relative(path));
  return result;
}

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
  if ((mode & W_OK) != 0 && state().readOnly != 0 && isInsideOrRoot(path)) {
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
