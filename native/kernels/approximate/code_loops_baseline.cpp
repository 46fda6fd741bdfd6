// For the instructions that every processor of the architecture has.
#define TARGET
#define REGISTER_BYTES 16

#include "kernels/approximate/code_loops_body.h"

namespace maxsimd {
namespace {

TARGET_INLINE bool anyReaches(const Entries& row, const Entries& bound) {
  const auto reached = row >= bound;
  uint64_t words[lanes / 8];
  std::memcpy(words, &reached, sizeof words);
  uint64_t any = 0;
  for (const uint64_t word : words) any |= word;
  return any != 0;
}

/// Bytes to words of 16 bits, four of them in each of four lanes; a product adds up the four of a lane.
TARGET_INLINE uint32_t sumOf(const Entries& entries) {
  typedef uint64_t Lanes __attribute__((vector_size(lanes)));
  constexpr uint64_t lowBytes = 0x00ff00ff00ff00ff, ones = 0x0001000100010001;
  const auto bytes = reinterpret_cast<const Lanes&>(entries);
  const Lanes words = (bytes & lowBytes) + (bytes >> 8 & lowBytes);
  return uint32_t((words[0] + words[1] + words[2] + words[3]) * ones >> 48);
}

/// The even halves of two registers, which pack instructions take, twice.
TARGET_INLINE Quantized narrow(const Integers (&integers)[rowRegisters]) {
  typedef uint16_t Words __attribute__((vector_size(REGISTER_BYTES)));
  Words words[2];
  for (uint32_t r = 0; r < 2; ++r)
    words[r] = __builtin_shufflevector(Words(integers[2 * r]), Words(integers[2 * r + 1]), 0, 2, 4, 6, 8, 10, 12, 14);
  return __builtin_shufflevector(Quantized(words[0]), Quantized(words[1]), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                 28, 30);
}

}  // namespace

const CodeLoops baselineCodeLoops = codeLoops("baseline");

}  // namespace maxsimd
