// Helpers for files that are made to mislead their readers: they read, change and write bytes, and correct checksums.
#pragma once

#include "files/crc32c.h"
#include "files/error.h"
#include "test/check.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace maxsimd::test {

using Bytes = std::vector<uint8_t>;

inline Bytes readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes in place. If a file was emptied before, a file system may write it to the disk at once.
inline void writeFile(const std::string& path, const Bytes& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.write(reinterpret_cast<const char*>(bytes.data()), long(bytes.size()));
  file.close();
  std::filesystem::resize_file(path, bytes.size());
}

template <typename T>
void put(Bytes& bytes, uint64_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
T get(const Bytes& bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Corrects the checksum of a header of 64 bytes. All formats have it in the same place.
inline void mendHeader(Bytes& bytes, uint64_t at) { put(bytes, at + 12, crc32c(bytes.data() + at + 16, 48)); }

/// Runs `body`. False if it throws an `Error` that describes the bytes; any other exception ends the test.
template <typename Body>
bool reads(const Body& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupportedVersion ||
          error.code() == ErrorCode::invalidArgument);
    return false;
  }
}

}  // namespace maxsimd::test
