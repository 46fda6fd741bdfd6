// Fuzz targets: readers of files and requests as functions of fuzzed bytes. libFuzzer runs them (entry/entry.cpp), and
// every test run repeats the inputs that it kept (replay_test.cpp). A target for files begins with an intact file,
// changes it as the bytes say, and corrects its checksums, because otherwise no change would pass them. A fault ends
// the process. A target returns true if the bytes were accepted.
#pragma once

#include "test/crafted.h"

#include <cstdint>
#include <span>

namespace maxsimd::test {

bool fuzzSegment(std::span<const uint8_t> bytes);
bool fuzzPostings(std::span<const uint8_t> bytes);
bool fuzzCodes(std::span<const uint8_t> bytes);
bool fuzzCodebookFile(std::span<const uint8_t> bytes);
bool fuzzCodebook(std::span<const uint8_t> bytes);
bool fuzzColumn(std::span<const uint8_t> bytes);
bool fuzzCondition(std::span<const uint8_t> bytes);

struct FuzzTarget {
  const char* name;
  bool (*run)(std::span<const uint8_t> bytes);
};

inline constexpr FuzzTarget fuzzTargets[] = {
    {"segment", fuzzSegment},   {"postings", fuzzPostings},   {"codes", fuzzCodes}, {"codebook-file", fuzzCodebookFile},
    {"codebook", fuzzCodebook}, {"column", fuzzColumn},       {"condition", fuzzCondition},
};

/// Interprets fuzzed bytes as choices and as changes of a file.
class FuzzInput {
 public:
  explicit FuzzInput(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  /// A number of `count` bytes; missing bytes are zeros.
  uint64_t take(size_t bytes) {
    uint64_t value = 0;
    const size_t there = std::min(bytes, bytes_.size());
    if (there > 0) std::memcpy(&value, bytes_.data(), there);
    bytes_ = bytes_.subspan(there);
    return value;
  }
  /// True once in four: most changes should pass the checksums.
  bool leavesDamaged() { return take(1) % 4 == 3; }

  /// Changes a file by all remaining bytes.
  void change(Bytes& file) {
    while (!empty() && !file.empty()) {
      const uint64_t kind = take(1) % 8, at = take(2) % file.size(), room = file.size() - at;
      if (kind < 4) {
        const uint64_t value = take(size_t(1) << kind);
        std::memcpy(file.data() + at, &value, std::min<uint64_t>(room, 1u << kind));
      } else if (kind == 4) {
        file.resize(at);
      } else if (kind == 5) {
        const uint64_t from = take(2) % file.size(), count = std::min({room, file.size() - from, take(1)});
        std::memmove(file.data() + at, file.data() + from, count);
      } else if (kind == 6) {
        file.insert(file.begin() + long(at), 64, uint8_t(take(1)));
      } else {
        file[at] = uint8_t(file[at] + take(1));
      }
    }
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace maxsimd::test
