// Every floating-point kernel this machine has against the scalar one, bit for bit, and that one against float64.
#include "kernels/dispatch.h"
#include "kernels/half.h"
#include "test/check.h"
#include "test/prepared_query.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace maxsimd::test {
namespace {

/// Matrices in buffers that end with the last row, so that the address sanitizer sees any kernel that reads further.
struct FloatDocuments {
  std::unique_ptr<float[]> floats;
  std::unique_ptr<uint16_t[]> halves;
  std::vector<FloatChunk> chunksF32, chunksF16;

  /// The f32 values are the f16 ones where `exact`, so that both forms score alike.
  FloatDocuments(Random& random, uint32_t dim, const std::vector<uint32_t>& rows, bool exact) {
    size_t total = 0;
    for (const uint32_t count : rows) total += count;
    const size_t shift = random() % 16;
    floats = std::make_unique<float[]>(shift + total * dim);
    halves = std::make_unique<uint16_t[]>(shift + total * dim);
    std::normal_distribution<float> normal;
    for (size_t i = shift; i < shift + total * dim; ++i) {
      const float value = normal(random);
      halves[i] = floatToHalf(value);
      floats[i] = exact ? halfToFloat(halves[i]) : value;
    }
    size_t first = shift;
    for (const uint32_t count : rows) {
      chunksF32.push_back({floats.get() + first, count});
      chunksF16.push_back({halves.get() + first, count});
      first += size_t(count) * dim;
    }
  }
};

constexpr float scaleStep = 0.25f;

std::vector<float> randomVectors(Random& random, uint32_t dim, uint32_t tokens) {
  std::normal_distribution<float> normal;
  std::vector<float> vectors(size_t(tokens) * dim);
  for (auto& value : vectors) value = normal(random);
  return vectors;
}

void compareFloatKernels(Random& random, uint32_t dim, uint32_t tokens, const std::vector<uint32_t>& rows) {
  const FloatDocuments documents(random, dim, rows, random() % 2 == 0);
  const std::vector<float> vectors = randomVectors(random, dim, tokens);
  const PreparedQuery reference(scalarFloatKernel, vectors, dim, tokens, scaleStep);
  const size_t count = rows.size();
  std::vector<float> f32(count), f16(count), others(count);
  scalarFloatKernel.maxsimF32(reference.query, documents.chunksF32.data(), count, f32.data());
  scalarFloatKernel.maxsimF16(reference.query, documents.chunksF16.data(), count, f16.data());
  for (const FloatKernel* kernel : floatKernels()) {
    if (!kernel->requires_(cpuFeatures())) continue;
    const uint64_t callsBefore = kernel->calls->load();
    const PreparedQuery prepared(*kernel, vectors, dim, tokens, scaleStep);
    kernel->maxsimF32(prepared.query, documents.chunksF32.data(), count, others.data());
    CHECK(std::memcmp(f32.data(), others.data(), count * sizeof(float)) == 0);
    kernel->maxsimF16(prepared.query, documents.chunksF16.data(), count, others.data());
    CHECK(std::memcmp(f16.data(), others.data(), count * sizeof(float)) == 0);
    CHECK(kernel->calls->load() == callsBefore + 2);
  }
}

const Case shapes("kernels", "f32 and f16: agree to the bit over odd dims, tokens and rows", [](Random& random) {
  for (const uint32_t dim : {1, 3, 7, 8, 9, 15, 96, 128, 129, 1024}) {
    for (const uint32_t tokens : {1, 16, 17, 33}) compareFloatKernels(random, dim, tokens, {1, 3, 4, 5, 8, 9});
  }
  compareFloatKernels(random, 20, queryTokensMax, {1, 11});
});

const Case fuzz("kernels", "f32 and f16: agree on random shapes", [](Random& random) {
  for (int round = 0, most = rounds(60); round < most; ++round) {
    const uint32_t dim = between(random, 1, random() % 8 == 0 ? dimMax : 160);
    compareFloatKernels(random, dim, between(random, 1, 70), {between(random, 1, 20), between(random, 1, 20)});
  }
});

const Case reference("kernels", "f32 and f16: scalar scores follow the definition in float64", [](Random& random) {
  for (int round = 0, most = rounds(30); round < most; ++round) {
    const uint32_t dim = between(random, 1, 300), tokens = between(random, 1, 70);
    const FloatDocuments documents(random, dim, {between(random, 1, 30)}, true);
    const std::vector<float> vectors = randomVectors(random, dim, tokens);
    const PreparedQuery prepared(scalarFloatKernel, vectors, dim, tokens, scaleStep);
    float f32, f16;
    scalarFloatKernel.maxsimF32(prepared.query, documents.chunksF32.data(), 1, &f32);
    scalarFloatKernel.maxsimF16(prepared.query, documents.chunksF16.data(), 1, &f16);
    CHECK(f32 == f16);
    const auto* rows = static_cast<const float*>(documents.chunksF32[0].vectors);
    double expected = 0, magnitude = 0;
    for (uint32_t i = 0; i < tokens; ++i) {
      double best = -INFINITY;
      for (uint32_t j = 0; j < documents.chunksF32[0].rows; ++j) {
        double dot = 0;
        for (uint32_t d = 0; d < dim; ++d) dot += double(vectors[i * dim + d]) * rows[j * dim + d];
        best = std::max(best, dot);
      }
      expected += best * prepared.scales[i] + prepared.offsets[i];
      magnitude += std::abs(best * prepared.scales[i]) + std::abs(prepared.offsets[i]) + 1;
    }
    CHECK(std::abs(f32 - expected) <= 1e-5 * magnitude);
  }
});

const Case choice("kernels", "f32 and f16: a forced kernel is that one or nothing", [](Random&) {
  CHECK(findFloatKernel("no such kernel") == nullptr);
  CHECK(findFloatKernel("scalar") == &scalarFloatKernel);
  CHECK(findFloatKernel("auto") != nullptr);
  for (const FloatKernel* kernel : floatKernels()) {
    CHECK(findFloatKernel(kernel->name) == (kernel->requires_(cpuFeatures()) ? kernel : nullptr));
  }
});

}  // namespace
}  // namespace maxsimd::test
