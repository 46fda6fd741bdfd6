// Files that are replaced as a whole: written beside their place, synced, then renamed.
#pragma once

#include "files/file.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// A file that takes the place of the one at `path`, if there is one, with `commit`. Without that, or after a failure,
/// the old file stays. After a crash a file may be left whose name begins like `path` and ends with `.tmp`.
class Replacement {
 public:
  explicit Replacement(std::string path);
  ~Replacement();
  Replacement(const Replacement&) = delete;

  File& file() { return *file_; }
  /// Makes the file durable.
  void commit();

 private:
  const std::string path_, temporary_;
  std::optional<File> file_;
};

/// Writes `parts` one after the other to `path` and makes them durable, as a replacement.
void replaceDurably(const std::string& path, const std::vector<std::span<const uint8_t>>& parts);

}  // namespace maxsimd
