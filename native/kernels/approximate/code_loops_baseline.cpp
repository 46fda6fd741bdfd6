// The loops over codes for SSE2 and NEON, which every processor of its architecture has.
#define TARGET
#define REGISTER_BYTES 16

#include "kernels/approximate/code_loops_body.h"

namespace maxsimd {
namespace {

TARGET_INLINE bool anyReaches(const Entries<fewTokens>& row, const Entries<fewTokens>& bound) {
  const auto reached = row >= bound;
  uint64_t words[2];
  std::memcpy(words, &reached, sizeof words);
  return (words[0] | words[1]) != 0;
}

TARGET_INLINE bool anyReaches(const Entries<manyTokens>& row, const Entries<manyTokens>& bound) {
  const auto reached = row >= bound;
  uint64_t words[4];
  std::memcpy(words, &reached, sizeof words);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
}

/// Words of 16 bits: two elements of four words each.
typedef uint64_t Words __attribute__((vector_size(16)));

/// Adds each even byte and the odd byte after it.
TARGET_INLINE Words pairSums(const uint8_t* bytes) {
  constexpr uint64_t lowBytes = 0x00ff00ff00ff00ff;
  Words both;
  std::memcpy(&both, bytes, sizeof both);
  return (both & lowBytes) + (both >> 8 & lowBytes);
}

/// One multiplication adds the four words of an element.
TARGET_INLINE uint32_t sumOfWords(const Words& words) {
  constexpr uint64_t ones = 0x0001000100010001;
  return uint32_t((words[0] + words[1]) * ones >> 48);
}

TARGET_INLINE uint32_t sumOf(const Entries<fewTokens>& entries) {
  return sumOfWords(pairSums(reinterpret_cast<const uint8_t*>(&entries)));
}

TARGET_INLINE uint32_t sumOf(const Entries<manyTokens>& entries) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&entries);
  return sumOfWords(pairSums(bytes) + pairSums(bytes + 16));
}

/// Takes the even halves of two registers, twice: that becomes two pack instructions.
TARGET_INLINE Quantized narrow(const Integers (&integers)[rowRegisters]) {
  typedef uint16_t Words __attribute__((vector_size(REGISTER_BYTES)));
  Words words[2];
  for (uint32_t r = 0; r < 2; ++r)
    words[r] = __builtin_shufflevector(Words(integers[2 * r]), Words(integers[2 * r + 1]), 0, 2, 4, 6, 8, 10, 12, 14);
  return __builtin_shufflevector(Quantized(words[0]), Quantized(words[1]), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22,
                                 24, 26, 28, 30);
}

}  // namespace

const CodeLoops baselineCodeLoops = codeLoops("baseline");

}  // namespace maxsimd
