// Compares every kernel with the scalar one, bit for bit, and the scalar one with float64. Kernels whose instructions this
// machine lacks run over emulated ones.
#include "kernels/dispatch.h"
#include "kernels/half.h"
#include "kernels/small_values.h"
#include "files/crc32c.h"
#include "runtime/aligned.h"
#include "test/check.h"
#include "test/kernels/edge_shapes.h"
#include "test/kernels/prepared_query.h"
#include "test/sample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

namespace test {
namespace {

/// All kernels that run here, except the reference.
std::vector<TestedKernel> comparedKernels() {
  std::vector<TestedKernel> all = testedKernels();
  std::erase_if(all, [](const TestedKernel& tested) { return tested.kernel == &scalarKernel; });
  return all;
}

/// Random int8 values: any, or only -128 and 127.
enum class Values { any, extreme };

int8_t valueOf(Random& random, Values values) {
  if (values == Values::any) return int8_t(random());
  return random() % 2 ? int8_t(-128) : int8_t(127);
}

/// int8 [tokens x dim] whose sums of eight are exactly the largest that count as small, or one more.
std::vector<int8_t> smallVectors(Random& random, uint32_t dim, uint32_t tokens, int32_t sum) {
  std::vector<int8_t> vectors(size_t(tokens) * dim, 0);
  for (uint32_t i = 0; i < tokens; ++i) {
    int8_t* vector = vectors.data() + size_t(i) * dim;
    for (uint32_t first = 0; first < dim; first += 16) {
      for (uint32_t half = 0; half < 2; ++half) {
        std::vector<uint32_t> eight;
        for (uint32_t d = first; d < std::min(first + 16, dim); ++d) {
          if (d / 2 % 2 == half) eight.push_back(d);
        }
        if (eight.empty()) continue;
        // Put the sum in one place, in a few or in all, with either sign.
        const auto places = int32_t(between(random, 1, uint32_t(eight.size())));
        const bool negative = random() % 2 == 0;
        for (int32_t p = 0; p < places; ++p) {
          const int32_t share = sum / places + (p == 0 ? sum % places : 0);
          vector[eight[size_t(p)]] = int8_t(std::clamp(negative ? -share : share, -128, 127));
        }
      }
    }
  }
  return vectors;
}

/// Documents in a buffer that ends exactly `readPaddingBytes` after the last row, so that the address sanitizer reports
/// a kernel that reads further. Rows start at an odd address.
struct Documents {
  std::unique_ptr<int8_t[]> bytes;
  std::unique_ptr<uint16_t[]> halves;
  std::vector<Chunk> chunks;

  Documents(Random& random, RowShape shape, const std::vector<uint32_t>& rows, Values values) {
    const size_t rowBytes = shape.bytes();
    size_t total = 0;
    for (const uint32_t count : rows) total += count;
    const size_t shift = random() % 64;
    bytes = std::make_unique<int8_t[]>(shift + total * rowBytes + readPaddingBytes);
    halves = std::make_unique<uint16_t[]>(total + readPaddingBytes / 2);
    for (size_t i = 0; i < total * rowBytes; ++i) {
      bytes[shift + i] = valueOf(random, values);
    }
    // Signs, zeros and subnormals included; never infinite.
    for (size_t i = 0; i < total; ++i) {
      do {
        halves[i] = uint16_t(random());
      } while (!halfIsFinite(halves[i]));
      if (random() % 4 == 0) halves[i] = 0x1c00;
    }
    size_t row = 0;
    for (const uint32_t count : rows) {
      chunks.push_back({bytes.get() + shift + row * rowBytes, halves.get() + row, count});
      row += count;
    }
  }
};

constexpr float scaleStep = 0.001f;

/// `vectors` is the query as int8 [tokens x dim].
void compareKernels(RowShape shape, const std::vector<int8_t>& vectors, const Documents& documents) {
  const uint32_t dim = shape.dim;
  const auto tokens = uint32_t(vectors.size() / dim);
  const uint32_t padded = paddedTokens(tokens);
  const size_t count = documents.chunks.size();
  const PreparedQuery reference(scalarKernel, vectors, shape, tokens, scaleStep);
  std::vector<float> scores(count);
  scalarKernel.maxsim(reference.query, documents.chunks.data(), count, scores.data());
  for (const auto& [kernel, emulated] : comparedKernels()) {
    const uint64_t callsBefore = kernel->calls->load();
    const PreparedQuery prepared(*kernel, vectors, shape, tokens, scaleStep);
    std::vector<float> others(count);
    kernel->maxsim(prepared.query, documents.chunks.data(), count, others.data());
    CHECK(std::memcmp(scores.data(), others.data(), count * sizeof(float)) == 0);
    CHECK(kernel->calls->load() > callsBefore);
    for (const Chunk& chunk : documents.chunks) {
      std::vector<float> best(padded), otherBest(padded);
      std::vector<uint32_t> row(padded), otherRow(padded);
      scalarKernel.best(reference.query, chunk, best.data(), row.data());
      kernel->best(prepared.query, chunk, otherBest.data(), otherRow.data());
      for (uint32_t i = 0; i < tokens; ++i) CHECK(best[i] == otherBest[i] && row[i] == otherRow[i]);
      std::vector<float> all(size_t(chunk.rows) * padded), otherAll(size_t(chunk.rows) * padded);
      scalarKernel.similarities(reference.query, chunk, all.data());
      kernel->similarities(prepared.query, chunk, otherAll.data());
      for (size_t i = 0; i < all.size(); ++i) CHECK(all[i] == otherAll[i]);
      if (shape.bits == 8) {
        CHECK(kernel->dot(vectors.data(), chunk.vectors, dim) == scalarKernel.dot(vectors.data(), chunk.vectors, dim));
      }
    }
  }
}

void compareKernels(Random& random, RowShape shape, uint32_t tokens, const std::vector<uint32_t>& rows, Values values) {
  const Documents documents(random, shape, rows, values);
  std::vector<int8_t> vectors(size_t(tokens) * shape.dim);
  for (auto& value : vectors) value = valueOf(random, values);
  compareKernels(shape, vectors, documents);
}

const Case everyDim("kernels", "agree to the bit over odd dims, tokens and rows", [](Random& random) {
  for (const uint32_t dim : {1, 2, 3, 4, 7, 31, 33, 63, 64, 65, 96, 127, 128, 129, 384, 1023, 1024}) {
    for (const uint32_t tokens : {1, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 48, 65}) {
      compareKernels(random, dim, tokens, {1, 2, 5, 6, 7, 8, 9, 17}, Values::any);
    }
  }
  for (const uint32_t tokens : {500, 512}) compareKernels(random, 8, tokens, {3, 40}, Values::any);
  compareKernels(random, 1024, 512, {9}, Values::any);
});

const Case fewBits("kernels", "agree to the bit on rows of 1, 2 and 4 bits", [](Random& random) {
  for (const uint32_t bits : {1, 2, 4}) {
    for (const uint32_t dim : {1, 31, 33, 64, 65, 96, 384}) {
      for (const uint32_t tokens : {1, 9, 17, 33}) {
        compareKernels(random, {dim, bits}, tokens, {1, 2, 7, 8, 9, 33}, Values::any);
      }
      compareKernels(random, {dim, bits}, 32, {17}, Values::extreme);
    }
    compareKernels(random, {1024, bits}, 512, {9}, Values::extreme);
  }
});

const Case unpacked("kernels", "rows of few bits score as their components do", [](Random& random) {
  for (const uint32_t bits : {1, 2, 4}) {
    for (const uint32_t dim : {1, 31, 96, 384}) {
      const RowShape shape(dim, bits);
      const Documents documents(random, shape, {20}, Values::any);
      std::vector<int8_t> components(20 * size_t(dim) + readPaddingBytes), query(9 * size_t(dim));
      unpackRows(documents.chunks[0].vectors, shape, 20, components.data());
      for (size_t at = 0; at < 20 * size_t(dim); ++at) {
        const int8_t component = components[at];
        CHECK(component == componentOf(documents.chunks[0].vectors + at / dim * shape.bytes(), bits, at % dim));
        CHECK(component % 2 != 0 && std::abs(component) <= componentMost(bits));
      }
      for (auto& value : query) value = int8_t(random());
      const Chunk wide{components.data(), documents.chunks[0].scales, 20};
      float few, whole;
      scalarKernel.maxsim(PreparedQuery(scalarKernel, query, shape, 9, scaleStep).query, &documents.chunks[0], 1, &few);
      scalarKernel.maxsim(PreparedQuery(scalarKernel, query, dim, 9, scaleStep).query, &wide, 1, &whole);
      CHECK(few == whole);
    }
  }
});

const Case extremes("kernels", "agree on extreme values, -128 included on both sides", [](Random& random) {
  for (const uint32_t dim : {1, 3, 64, 127, 128, 1024}) compareKernels(random, dim, 33, {1, 8, 13}, Values::extreme);
});

const Case small("kernels", "agree on queries of small values, up to the largest sums and beyond", [](Random& random) {
  for (const uint32_t dim : {1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 96, 127, 128, 129, 1023, 1024}) {
    for (const uint32_t tokens : {1, 8, 9, 16, 17, 24, 33}) {
      for (const Values values : {Values::any, Values::extreme}) {
        const Documents documents(random, dim, {1, 2, 5, 6, 7, 8, 9, 17}, values);
        for (const int32_t sum : {smallSumMost, smallSumMost + 1}) {
          const std::vector<int8_t> vectors = smallVectors(random, dim, tokens, sum);
          if (dim == 128 && tokens > 8) CHECK(areSmall(vectors.data(), dim, tokens) == (sum == smallSumMost));
          compareKernels(dim, vectors, documents);
        }
        // One vector of larger values is enough, even the last.
        std::vector<int8_t> vectors = smallVectors(random, dim, tokens, smallSumMost);
        const std::vector<int8_t> larger = smallVectors(random, dim, 1, smallSumMost + 1);
        std::copy(larger.begin(), larger.end(), vectors.end() - dim);
        if (dim == 128) CHECK(!areSmall(vectors.data(), dim, tokens));
        compareKernels(dim, vectors, documents);
      }
    }
  }
});

/// Mostly up to `often`, at times up to `most`.
uint32_t skewed(Random& random, uint32_t often, uint32_t most) {
  return between(random, 1, random() % 4 == 0 ? most : often);
}

const Case fuzz("kernels", "agree on random shapes: dims to 1024, tokens to 512, unaligned rows", [](Random& random) {
  for (int round = 0, most = rounds(120); round < most; ++round) {
    const uint32_t dim = skewed(random, 160, dimMax), tokens = skewed(random, 80, queryTokensMax);
    // The reference takes a nanosecond a product.
    const uint32_t rowsMost = std::clamp(600000u / (dim * tokens), 1u, 70u);
    std::vector<uint32_t> rows(between(random, 1, 4));
    for (auto& count : rows) count = between(random, 1, rowsMost);
    const uint32_t bits = 1u << random() % 4;
    compareKernels(random, {dim, bits}, tokens, rows, random() % 8 == 0 ? Values::extreme : Values::any);
  }
});

const Case blocks("kernels", "agree on every number of rows around blocks and tiles", [](Random& random) {
  std::vector<uint32_t> rows(70);
  for (uint32_t count = 1; count <= rows.size(); ++count) rows[count - 1] = count;
  for (const uint32_t dim : {96, 128}) {
    for (const uint32_t tokens : {8, 16, 24, 32}) compareKernels(random, dim, tokens, rows, Values::any);
  }
});

const Case reference("kernels", "scalar scores follow the definition in float64", [](Random& random) {
  for (int round = 0, most = rounds(30); round < most; ++round) {
    const uint32_t dim = between(random, 1, 300), tokens = between(random, 1, 70);
    const Documents documents(random, dim, {between(random, 1, 30)}, Values::any);
    const Chunk& chunk = documents.chunks[0];
    std::vector<int8_t> vectors(size_t(tokens) * dim);
    for (auto& value : vectors) value = int8_t(random());
    const PreparedQuery prepared(scalarKernel, vectors, dim, tokens, scaleStep);
    float score;
    scalarKernel.maxsim(prepared.query, &chunk, 1, &score);
    double expected = 0, magnitude = 0;
    for (uint32_t i = 0; i < tokens; ++i) {
      double best = -INFINITY;
      for (uint32_t j = 0; j < chunk.rows; ++j) {
        int64_t dot = 0;
        for (uint32_t d = 0; d < dim; ++d) dot += int64_t(vectors[i * dim + d]) * chunk.vectors[j * dim + d];
        best = std::max(best, double(dot) * double(halfToFloat(chunk.scales[j])));
      }
      const double term = best * prepared.scales[i] + prepared.offsets[i];
      expected += term;
      magnitude += std::abs(best * prepared.scales[i]) + std::abs(prepared.offsets[i]);
    }
    CHECK(std::abs(score - expected) <= 1e-6 * magnitude);
  }
});

const Case halves("kernels", "f16 widens exactly and narrows to nearest even", [](Random&) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = uint16_t(bits);
    const int exponent = (bits >> 10 & 31), mantissa = bits & 1023;
    if (exponent == 31) continue;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    CHECK(halfToFloat(half) == float(bits & 0x8000 ? -magnitude : magnitude));
    CHECK(floatToHalf(halfToFloat(half)) == half);
    if (bits < 0x7bff) {
      const double middle = (double(halfToFloat(half)) + double(halfToFloat(uint16_t(bits + 1)))) / 2;
      CHECK(floatToHalf(float(middle)) == (bits % 2 == 0 ? bits : bits + 1));
    }
  }
});

const Case names("kernels", "say what is compared here", [](Random&) {
  for (const TestedKernel& tested : comparedKernels()) std::printf("  compared %s\n", tested.name().c_str());
  CHECK(!comparedKernels().empty() || findKernel("auto") == &scalarKernel);
});

const Case choice("kernels", "a forced kernel is that one or nothing", [](Random&) {
  CHECK(findKernel("no such kernel") == nullptr);
  CHECK(findKernel("") == nullptr);
  CHECK(findKernel("scalar") == &scalarKernel);
  CHECK(findKernel("auto") != nullptr);
  for (const Kernel* kernel : kernels()) {
    CHECK(findKernel(kernel->name) == (kernel->requires_(cpuFeatures()) ? kernel : nullptr));
  }
  // The kernel's loops over codes are compared, too.
  CHECK(std::string(scalarKernel.loops->name) == "baseline");
#if defined(__x86_64__)
  CHECK(avx2Kernel.loops == &avx2CodeLoops && avxvnniKernel.loops == &avx2CodeLoops);
  CHECK(avx512vnniKernel.loops == &avx2CodeLoops && amxKernel.loops == &avx2CodeLoops);
#endif
});

const Case checksum("kernels", "crc32c matches its definition at every length and split", [](Random& random) {
  CHECK(crc32c("123456789", 9) == 0xe3069283u);
  std::vector<uint8_t> bytes(8000);
  for (auto& byte : bytes) byte = uint8_t(random());
  uint32_t slow = ~0u;
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK(crc32c(bytes.data(), length) == ~slow);
    slow ^= bytes[length];
    for (int k = 0; k < 8; ++k) slow = slow >> 1 ^ (slow & 1 ? 0x82f63b78u : 0);
  }
  const size_t split = random() % bytes.size();
  CHECK(crc32c(bytes.data() + split, bytes.size() - split, crc32c(bytes.data(), split)) ==
        crc32c(bytes.data(), bytes.size()));
});

}  // namespace
}  // namespace test
}  // namespace maxsimd
