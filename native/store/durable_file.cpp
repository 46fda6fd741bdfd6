#include "store/durable_file.h"

#include "store/error.h"
#include "store/file.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace maxsimd {

WrittenFile::WrittenFile(std::string path, std::initializer_list<std::span<const uint8_t>> parts)
    : path_(std::move(path)), temporary_(path_ + ".tmp") {
  unlink(temporary_.c_str());
  try {
    File file = File::create(temporary_);
    uint64_t offset = 0;
    for (const auto part : parts) {
      file.write(offset, part.data(), part.size());
      offset += part.size();
    }
    file.sync();
  } catch (...) {
    unlink(temporary_.c_str());
    throw;
  }
}

WrittenFile::~WrittenFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void WrittenFile::putInPlace() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw Error::fromErrno("rename " + temporary_);
  temporary_.clear();
  syncDirectoryOf(path_);
}

void replaceDurably(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts) {
  WrittenFile(path, parts).putInPlace();
}

bool linkDurably(const std::string& existing, const std::string& path) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  if (link(existing.c_str(), temporary.c_str()) != 0) return false;
  const bool renamed = std::rename(temporary.c_str(), path.c_str()) == 0;
  // A rename between two names of one file does nothing and leaves both.
  unlink(temporary.c_str());
  if (renamed) syncDirectoryOf(path);
  return renamed;
}

}  // namespace maxsimd
