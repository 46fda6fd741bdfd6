#include "files/durable_file.h"

#include "files/error.h"

#include <unistd.h>

#include <cstdio>
#include <random>
#include <utility>

namespace maxsimd {
namespace {

/// Another process may replace the same file, since nodes can share a cache.
std::string temporaryOf(const std::string& path) {
  return path + "." + std::to_string(std::random_device()()) + ".tmp";
}

}  // namespace

Replacement::Replacement(std::string path) : path_(std::move(path)), temporary_(temporaryOf(path_)) {
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
