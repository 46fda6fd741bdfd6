// The data that `disk-shim.cpp` shares with a test: the state that the test sets, and the log of calls.
#pragma once

#include <atomic>
#include <cstdint>

/// The file `DISK_SHIM_STATE`: 64-bit integers, shared by all processes and the test.
struct DiskState {
  /// Free bytes: files may grow by this number. Negative = no bound.
  std::atomic<int64_t> freeBytes;
  std::atomic<int64_t> readOnly;
  /// The bytes of each segment that `pread` fails to read: the first, and one past the last.
  std::atomic<int64_t> unreadFirst;
  std::atomic<int64_t> unreadEnd;
  /// Number of calls so far that changed or synced something on the disk.
  std::atomic<int64_t> calls;
  /// The calls that fail, by this number: the first, and one past the last. `failErrno` is their error. If it is 0, writes do
  /// nothing and succeed: a planted fault, which tests must find.
  std::atomic<int64_t> failFirst;
  std::atomic<int64_t> failEnd;
  std::atomic<int64_t> failErrno;
  /// A planted fault, which tests must find: syncs of files of these kinds (the bits of `isAmong`) do nothing and succeed.
  std::atomic<int64_t> lostSyncs;
  /// Syncs of files of these kinds fail with EIO.
  std::atomic<int64_t> failedSyncs;
};

/// An entry of the log `DISK_SHIM_LOG`: this header, then `bytes` of payload. Paths are relative to the directory.
struct LogEntry {
  enum Kind : uint32_t {
    create = 1,  // payload: path
    mkdir,       // path
    remove,      // path of a file or a directory
    rename,      // path, NUL, path
    link,        // path, NUL, path
    write,       // the bytes; `number`: offset
    resize,      // `number`: length
    syncBegin,   // `number` of the sync
    syncEnd,     // `number` of the sync
    syncFailed,  // `number` of the sync
    refused,     // path; `number`: kind of the call that was made to fail
    note,        // what the process wrote to DISK_SHIM_NOTES
  };
  uint32_t kind;
  uint32_t bytes;
  uint64_t inode;
  int64_t number;
};
