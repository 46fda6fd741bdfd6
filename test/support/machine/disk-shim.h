// What `disk-shim.cpp` shares with the test: the state that the test sets, and the log of what was done to the disk.
#pragma once

#include <atomic>
#include <cstdint>

/// The file `DISK_SHIM_STATE`: 64-bit integers, shared by all processes and the test.
struct DiskState {
  /// How many bytes are free (files may grow by so much); negative: no bound.
  std::atomic<int64_t> freeBytes;
  std::atomic<int64_t> readOnly;
  /// Which bytes of each segment `pread` fails to read: the first, and the one behind the last.
  std::atomic<int64_t> unreadFirst;
  std::atomic<int64_t> unreadEnd;
  /// Calls so far that change or sync what is on the disk.
  std::atomic<int64_t> calls;
  /// Which of them fail, the first and the one behind the last, and with what; with 0, a fault to be found, writes do
  /// nothing and succeed.
  std::atomic<int64_t> failFirst;
  std::atomic<int64_t> failEnd;
  std::atomic<int64_t> failErrno;
  /// A fault to be found: syncs of files of these kinds (the bits of `isAmong`) do nothing and succeed.
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
