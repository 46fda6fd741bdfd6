// Readers of files and of requests as functions of fuzzed bytes: run by libFuzzer (entry/entry.cpp), and with what it found
// once, in every run of the tests (replay_test.cpp). Those of files begin with sound ones, change one as the bytes say, and
// set its checksums right, or no change would get past them. What is wrong ends the process. True = the bytes were taken for
// sound.
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
bool fuzzCondition(std::span<const uint8_t> bytes);

struct FuzzTarget {
  const char* name;
  bool (*run)(std::span<const uint8_t> bytes);
};

inline constexpr FuzzTarget fuzzTargets[] = {
    {"segment", fuzzSegment},   {"postings", fuzzPostings},   {"codes", fuzzCodes}, {"codebook-file", fuzzCodebookFile},
    {"codebook", fuzzCodebook}, {"condition", fuzzCondition},
};

/// Fuzzed bytes as choices and as changes of a file.
class FuzzInput {
 public:
  explicit FuzzInput(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  /// A number of so many bytes; those that are missing are zeros.
  uint64_t take(size_t bytes) {
    uint64_t value = 0;
    const size_t there = std::min(bytes, bytes_.size());
    if (there > 0) std::memcpy(&value, bytes_.data(), there);
    bytes_ = bytes_.subspan(there);
    return value;
  }
  /// One in four: most changes are to get past the checksums.
  bool leavesDamaged() { return take(1) % 4 == 3; }

  /// Changes a file by all that is left.
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
