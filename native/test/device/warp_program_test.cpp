// Compares the program of a warp, emulated, with the CPU's scalar kernel, bit by bit, and the selection with a sort.
#include "device/cuda/selection.h"
#include "device/cuda/warp_program.h"
#include "kernels/contract.h"
#include "kernels/dispatch.h"
#include "kernels/half.h"
#include "test/check.h"
#include "test/device/emulated_warp.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace maxsimd::cuda {
namespace {

using test::Random;

uint32_t below(Random& random, uint32_t end) { return uint32_t(random() % end); }

/// Chunks of uneven lengths and queries of random bytes, with many extreme values.
struct Matrices {
  RowShape rows;
  uint32_t chunks, queries, tokens, blocks;
  std::vector<int8_t> vectors, queryVectors;
  std::vector<uint16_t> scales;
  std::vector<uint64_t> starts{0};
  std::vector<float> queryScales, offsets;
  std::vector<int32_t> biases;

  Matrices(Random& random, RowShape shape) : rows(shape) {
    chunks = 1 + below(random, 6);
    queries = 1 + below(random, 5);
    tokens = 1 + below(random, below(random, 4) == 0 ? queryTokensMax : 40);
    blocks = (tokens + blockTokens - 1) / blockTokens;
    const bool extreme = below(random, 4) == 0;
    const auto value = [&] { return int8_t(extreme ? (below(random, 2) == 0 ? -128 : 127) : below(random, 256)); };
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) starts.push_back(starts.back() + 1 + below(random, 70));
    for (uint64_t n = 0; n < starts.back() * rows.bytes(); ++n) vectors.push_back(value());
    // Small integers, so that maxima are often equal.
    for (uint64_t n = 0; n < starts.back(); ++n)
      scales.push_back(below(random, 8) == 0 ? 0 : floatToHalf(float(below(random, 1000)) / 65536.0f));
    const uint32_t padded = blocks * blockTokens;
    queryVectors.resize(size_t(queries) * padded * rows.dim);
    queryScales.resize(size_t(queries) * padded);
    offsets.resize(size_t(queries) * padded);
    biases.resize(size_t(queries) * padded);
    for (uint32_t query = 0; query < queries; ++query) {
      for (uint32_t token = 0; token < tokens; ++token) {
        const size_t at = size_t(query) * padded + token;
        for (uint32_t d = 0; d < rows.dim; ++d) queryVectors[at * rows.dim + d] = value();
        biases[at] = biasOf(&queryVectors[at * rows.dim], rows.dim, rows.bits);
        queryScales[at] = float(random() % 10'000) / 65'537.0f;
        offsets[at] = float(random() % 1000) / 999.0f - 0.5f;
      }
    }
  }

  Documents documents() const { return {vectors.data(), scales.data(), starts.data(), chunks}; }
  Queries all() const {
    return {queryVectors.data(), queryScales.data(), offsets.data(), biases.data(), queries, blocks, chunks};
  }

  float wanted(uint32_t query, uint32_t chunk) const {
    const uint32_t padded = blocks * blockTokens;
    const int8_t* asked = queryVectors.data() + size_t(query) * padded * rows.dim;
    const auto packed = std::make_unique<uint64_t[]>(scalarKernel.packedBytes(rows, tokens) / 8 + 1);
    scalarKernel.pack(asked, rows, tokens, packed.get());
    const PackedQuery whole = {rows.dim,
                               tokens,
                               paddedTokens(tokens),
                               packed.get(),
                               queryScales.data() + size_t(query) * padded,
                               offsets.data() + size_t(query) * padded,
                               rows.bits};
    const Chunk one = {vectors.data() + starts[chunk] * rows.bytes(), scales.data() + starts[chunk],
                       uint32_t(starts[chunk + 1] - starts[chunk])};
    float score;
    scalarKernel.maxsim(whole, &one, 1, &score);
    return score;
  }
};

template <uint32_t Bits, uint32_t Steps, uint32_t AtOnce>
void check(Random& random) {
  const Matrices one(random, {Steps * stepDims(Bits), Bits});
  std::vector<float> scores(size_t(one.queries) * one.chunks, -1.0f);
  WarpProgram<EmulatedWarp, Bits, Steps, AtOnce> program(one.documents(), one.all());
  program.begin(0);
  for (uint32_t chunk = 0; chunk < one.chunks; ++chunk) {
    program.score(chunk, std::min(chunk + 1, one.chunks - 1), scores.data());
  }
  for (uint32_t query = 0; query < one.queries; ++query) {
    for (uint32_t chunk = 0; chunk < one.chunks; ++chunk) {
      const float found = scores[size_t(query) * one.chunks + chunk], wanted = one.wanted(query, chunk);
      CHECK(std::memcmp(&found, &wanted, 4) == 0);
    }
  }
}

const test::Case program("device", "a warp gives the scalar kernel's scores to the last bit", [](Random& random) {
  for (int round = 0; round < test::rounds(5); ++round) {
    check<8, 1, 1>(random);
    check<8, 2, 1>(random);
    check<8, 2, 4>(random);
    check<8, 8, 4>(random);
    check<8, 16, 1>(random);
    check<4, 1, 4>(random);
    check<4, 8, 1>(random);
    check<2, 1, 1>(random);
    check<2, 3, 1>(random);
    check<2, 3, 4>(random);
    check<1, 1, 1>(random);
    check<1, 6, 4>(random);
  }
});

const test::Case selection("device", "the best k by radix selection are those of a sort", [](Random& random) {
  for (int round = 0; round < test::rounds(20); ++round) {
    std::vector<uint32_t> keys;
    const uint32_t count = 1 + below(random, 5000), kinds = 1 + below(random, 3000);
    for (uint32_t chunk = 0; chunk < count; ++chunk) {
      const float score = float(int32_t(below(random, kinds)) - int32_t(kinds / 2)) / 64.0f + 0.0f;
      keys.push_back(keyOf(score));
      CHECK(scoreOf(keys.back()) == score);
    }
    const uint32_t k = 1 + below(random, count + 9);
    Selection selection = {0, k};
    for (uint32_t pass = 0; pass < passes; ++pass) {
      std::vector<uint32_t> counts(digits);
      for (const uint32_t key : keys) {
        if (begins(key, selection, pass)) counts[digitOf(key, pass)] += 1;
      }
      choose(selection, counts.data(), pass);
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    // None is below 0.
    CHECK(selection.prefix == (k <= count ? keys[k - 1] : 0));
  }
});

}  // namespace
}  // namespace maxsimd::cuda
