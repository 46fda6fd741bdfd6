// A loadable extension that gives every page of a SQLite database a checksum.
//
// SQLite trusts the pages that it reads: a flipped bit may hide rows or change them without an error. With this
// extension the last four bytes of each page are its CRC-32C, seeded with the page number. They are set when a page is
// written to the database file and checked when it is read. A page that does not match, or that stands in the wrong
// place, fails its read with SQLITE_IOERR_DATA. Pages in the write-ahead log are covered by the log's own checksums.
// The idea is that of SQLite's cksumvfs.
//
// Once loaded, the extension applies to every database that the process opens. A new database gets room for the
// checksums on its pages. No page of a database without checksums can be read.
#include <sqlite3ext.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "files/crc32c.h"

SQLITE_EXTENSION_INIT1

namespace {

constexpr int checksumBytes = 4;
constexpr int pageBytesMax = 65536;

/// Our state of an open file. It stands after SQLite's own.
struct FileState {
  const sqlite3_io_methods* base;
  /// `base` with the functions below in place of its own.
  sqlite3_io_methods methods;
  bool checked;
};

sqlite3_vfs* baseVfs = nullptr;
sqlite3_vfs vfs;

int stateOffset() { return (baseVfs->szOsFile + 7) / 8 * 8; }

FileState& stateOf(sqlite3_file* file) {
  return *reinterpret_cast<FileState*>(reinterpret_cast<uint8_t*>(file) + stateOffset());
}

/// All other reads and writes of that file are smaller: parts of its header.
bool isPage(int bytes, sqlite3_int64 offset) {
  return bytes >= 512 && bytes <= pageBytesMax && (bytes & (bytes - 1)) == 0 && offset % bytes == 0;
}

std::array<uint8_t, checksumBytes> checksumOf(const void* page, int bytes, sqlite3_int64 offset) {
  const auto number = static_cast<uint32_t>(offset / bytes + 1);
  const uint32_t crc = maxsimd::crc32c(page, static_cast<size_t>(bytes - checksumBytes), number);
  return {uint8_t(crc), uint8_t(crc >> 8), uint8_t(crc >> 16), uint8_t(crc >> 24)};
}

/// Whether a page past the end of the file was never written: the page count of the header does not include it. SQLite
/// would take any other missing page for zeros.
bool isNew(const FileState& state, sqlite3_file* file, int bytes, sqlite3_int64 offset) {
  constexpr int countOffset = 28;
  sqlite3_int64 fileBytes = 0;
  if (state.base->xFileSize(file, &fileBytes) != SQLITE_OK) return false;
  if (fileBytes == 0) return true;
  std::array<uint8_t, 4> count;
  if (state.base->xRead(file, count.data(), count.size(), countOffset) != SQLITE_OK) return false;
  const uint32_t pages = uint32_t(count[0]) << 24 | uint32_t(count[1]) << 16 | uint32_t(count[2]) << 8 | count[3];
  return offset / bytes >= pages;
}

int readFile(sqlite3_file* file, void* buffer, int bytes, sqlite3_int64 offset) {
  const FileState& state = stateOf(file);
  const int status = state.base->xRead(file, buffer, bytes, offset);
  if (!state.checked || !isPage(bytes, offset)) return status;
  if (status == SQLITE_IOERR_SHORT_READ) {
    return isNew(state, file, bytes, offset) ? status : SQLITE_IOERR_DATA;
  }
  if (status != SQLITE_OK) return status;
  const auto expected = checksumOf(buffer, bytes, offset);
  const auto* found = static_cast<const uint8_t*>(buffer) + bytes - checksumBytes;
  return std::memcmp(found, expected.data(), checksumBytes) == 0 ? SQLITE_OK : SQLITE_IOERR_DATA;
}

int writeFile(sqlite3_file* file, const void* buffer, int bytes, sqlite3_int64 offset) {
  const FileState& state = stateOf(file);
  if (!state.checked || !isPage(bytes, offset)) return state.base->xWrite(file, buffer, bytes, offset);
  std::array<uint8_t, pageBytesMax> page;
  const auto checksum = checksumOf(buffer, bytes, offset);
  std::memcpy(page.data(), buffer, static_cast<size_t>(bytes - checksumBytes));
  std::memcpy(page.data() + bytes - checksumBytes, checksum.data(), checksumBytes);
  return state.base->xWrite(file, page.data(), bytes, offset);
}

/// Reads of parts of pages would bypass the checksums.
int characteristicsOf(sqlite3_file* file) {
  return stateOf(file).base->xDeviceCharacteristics(file) & ~SQLITE_IOCAP_SUBPAGE_READ;
}

int openFile(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* flagsOut) {
  const int status = baseVfs->xOpen(baseVfs, name, file, flags, flagsOut);
  if (status != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0) return status;
  FileState& state = stateOf(file);
  state = {.base = file->pMethods, .methods = *file->pMethods, .checked = false};
  // Version 2 has no memory mapping, which would bypass the checksums.
  state.methods.iVersion = 2;
  state.methods.xRead = readFile;
  state.methods.xWrite = writeFile;
  state.methods.xDeviceCharacteristics = characteristicsOf;
  file->pMethods = &state.methods;
  return SQLITE_OK;
}

/// Runs for every new connection.
int checkDatabase(sqlite3* connection, char**, const sqlite3_api_routines*) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  // A database in memory has no methods.
  if (file == nullptr || file->pMethods == nullptr) return SQLITE_OK;
  stateOf(file).checked = true;
  int reserved = checksumBytes;
  return sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
}

int install() {
  baseVfs = sqlite3_vfs_find(nullptr);
  if (baseVfs == nullptr) return SQLITE_ERROR;
  vfs = *baseVfs;
  vfs.pNext = nullptr;
  vfs.zName = "maxsimd-page-checksums";
  vfs.szOsFile = stateOffset() + static_cast<int>(sizeof(FileState));
  vfs.xOpen = openFile;
  const int registered = sqlite3_vfs_register(&vfs, 1);
  return registered != SQLITE_OK ? registered : sqlite3_auto_extension(reinterpret_cast<void (*)()>(checkDatabase));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int sqlite3_pagechecksums_init(sqlite3*, char**,
                                                                                 const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api);
  static std::once_flag once;
  static int installed = SQLITE_OK;
  std::call_once(once, [] { installed = install(); });
  return installed == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : installed;
}
