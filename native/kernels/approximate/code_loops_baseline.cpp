// For the instructions that every processor of the architecture has.
#define TARGET

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

TARGET_INLINE uint32_t sumOf(const Entries& entries) {
  const Products wide = __builtin_convertvector(entries, Products);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < lanes; ++i) sum += wide[i];
  return sum;
}

}  // namespace

const CodeLoops baselineCodeLoops = codeLoops("baseline");

}  // namespace maxsimd
