#include "files/durable_file.h"

#include "files/error.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace maxsimd {

Replacement::Replacement(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  unlink(temporary_.c_str());
  file_.emplace(File::create(temporary_));
}

Replacement::~Replacement() {
  if (file_) unlink(temporary_.c_str());
}

void Replacement::commit() {
  file_->sync();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw Error::fromErrno("rename " + temporary_);
  file_.reset();
  syncDirectoryOf(path_);
}

void replaceDurably(const std::string& path, const std::vector<std::span<const uint8_t>>& parts) {
  Replacement replacement(path);
  uint64_t offset = 0;
  for (const auto part : parts) {
    replacement.file().write(offset, part.data(), part.size());
    offset += part.size();
  }
  replacement.commit();
}

}  // namespace maxsimd
