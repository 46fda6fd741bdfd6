// Whole files that appear at once or not at all: written beside their place, synced, renamed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace maxsimd {

/// A file written as `path`.tmp and synced, with `parts` one after the other. It goes again unless it is put in place;
/// a crash may leave it.
class WrittenFile {
 public:
  WrittenFile(std::string path, std::initializer_list<std::span<const uint8_t>> parts);
  ~WrittenFile();
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  /// It is the file at `path`, durably, whatever was there before.
  void putInPlace();

 private:
  std::string path_;
  std::string temporary_;
};

/// Both at once.
void replaceDurably(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts);

/// `path` becomes another name of the file `existing`, likewise. `false` where there is no such file, or the file
/// system has no links.
bool linkDurably(const std::string& existing, const std::string& path);

}  // namespace maxsimd
