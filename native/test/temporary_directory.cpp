#include "test/check.h"

#include <filesystem>

namespace maxsimd::test {

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "maxsimd-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) fail(__FILE__, __LINE__, "mkdtemp");
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() { std::filesystem::remove_all(path_); }

}  // namespace maxsimd::test
