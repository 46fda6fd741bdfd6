#include "runtime/kernel_check.h"

#include "runtime/query.h"
#include "kernels/dispatch.h"
#include "files/error.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace maxsimd {
namespace {

struct Size {
  RowShape shape;
  uint32_t tokens;
  std::vector<uint32_t> rows;
};

/// Pseudo-random bytes (xorshift), so that no pattern hides a wrong lane.
class Bytes {
 public:
  int8_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return int8_t(state_ >> 8);
  }

 private:
  uint32_t state_ = 0x9e3779b9;
};

/// Compares on one query and some chunks; the query's values are divided by `divisor`.
bool agrees(const Kernel& kernel, const Size& size, int8_t divisor, Bytes& bytes) {
  std::vector<int8_t> query(size_t(size.tokens) * size.shape.dim);
  for (int8_t& value : query) value = int8_t(bytes.next() / divisor);
  const Query tested(kernel, query.data(), size.tokens, size.shape);
  const Query reference(scalarKernel, query.data(), size.tokens, size.shape);

  uint32_t all = 0;
  for (const uint32_t rows : size.rows) all += rows;
  std::vector<int8_t> vectors(std::max(size_t(size.shape.dim), all * size.shape.bytes()) + readPaddingBytes);
  for (int8_t& value : vectors) value = bytes.next();
  std::vector<uint16_t> scales(all + readPaddingBytes);
  for (uint16_t& scale : scales) scale = uint16_t(0x1c00 + uint8_t(bytes.next()));
  std::vector<Chunk> chunks;
  uint32_t row = 0;
  for (const uint32_t rows : size.rows) {
    chunks.push_back({vectors.data() + row * size.shape.bytes(), scales.data() + row, rows});
    row += rows;
  }

  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  };
  std::vector<float> scores(chunks.size()), expected(chunks.size());
  kernel.maxsim(tested.packed(), chunks.data(), chunks.size(), scores.data());
  scalarKernel.maxsim(reference.packed(), chunks.data(), chunks.size(), expected.data());
  if (!same(scores, expected)) return false;
  const uint32_t padded = paddedTokens(size.tokens);
  for (const Chunk& chunk : chunks) {
    std::vector<float> best(padded), expectedBest(padded);
    std::vector<uint32_t> rows(padded), expectedRows(padded);
    kernel.best(tested.packed(), chunk, best.data(), rows.data());
    scalarKernel.best(reference.packed(), chunk, expectedBest.data(), expectedRows.data());
    for (auto* values : {&best, &expectedBest}) values->resize(size.tokens);
    for (auto* values : {&rows, &expectedRows}) values->resize(size.tokens);
    if (!same(best, expectedBest) || !same(rows, expectedRows)) return false;
    std::vector<float> all(size_t(chunk.rows) * padded), expectedAll(size_t(chunk.rows) * padded);
    kernel.similarities(tested.packed(), chunk, all.data());
    scalarKernel.similarities(reference.packed(), chunk, expectedAll.data());
    if (all != expectedAll) return false;
  }
  const uint32_t dim = size.shape.dim;
  return kernel.dot(query.data(), vectors.data(), dim) == scalarKernel.dot(query.data(), vectors.data(), dim);
}

}  // namespace

bool agreesWithScalar(const Kernel& kernel) {
  Bytes bytes;
  for (const uint32_t bits : {1, 2, 4, 8}) {
    for (const Size& size :
         {Size{{128, bits}, 32, {1, 17, 40}}, Size{{96, bits}, 19, {5, 33}}, Size{{7, bits}, 3, {2, 16}}}) {
      // Queries of small values are packed differently (small_values.h).
      if (!agrees(kernel, size, 1, bytes) || !agrees(kernel, size, 16, bytes)) return false;
    }
  }
  return true;
}

const Kernel& trustedKernel(std::string_view name) {
  if (name == "auto") {
    for (const Kernel* kernel : kernels()) {
      if (kernel->requires_(cpuFeatures()) && agreesWithScalar(*kernel)) return *kernel;
    }
    return scalarKernel;
  }
  const Kernel* kernel = findKernel(name);
  if (kernel == nullptr) {
    throw Error(ErrorCode::invalidArgument, "kernel " + std::string(name) + " is unknown or not supported here");
  }
  if (!agreesWithScalar(*kernel)) {
    throw Error(ErrorCode::invalidArgument, "kernel " + std::string(name) + " gives wrong results on this machine");
  }
  return *kernel;
}

}  // namespace maxsimd
