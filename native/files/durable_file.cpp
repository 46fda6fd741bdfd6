#include "files/durable_file.h"

#include "files/error.h"
#include "files/file.h"

#include <unistd.h>

#include <cstdio>

namespace maxsimd {

void replaceDurably(const std::string& path, const std::vector<std::span<const uint8_t>>& parts) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  try {
    File file = File::create(temporary);
    uint64_t offset = 0;
    for (const auto part : parts) {
      file.write(offset, part.data(), part.size());
      offset += part.size();
    }
    file.sync();
    if (std::rename(temporary.c_str(), path.c_str()) != 0) throw Error::fromErrno("rename " + temporary);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  syncDirectoryOf(path);
}

}  // namespace maxsimd
