#include "test/kernels/edge_shapes.h"

#include "kernels/encoding/pooling.h"
#include "kernels/encoding/quantized_rows.h"
#include "kernels/encoding/row_loops.h"
#include "kernels/half.h"
#include "runtime/aligned.h"
#include "test/kernels/prepared_query.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <span>

namespace maxsimd {

#if defined(__x86_64__)
extern const Kernel amxEmulatedKernel;
extern const Kernel avx512vnniEmulatedKernel;
extern const Kernel avxvnniEmulatedKernel;
extern const Kernel neonEmulatedKernel;
#endif

namespace test {
namespace {

/// `count` elements before, and nothing behind, a page that faults. Filled with a byte.
template <typename T>
class Guarded {
 public:
  explicit Guarded(size_t count, size_t alignment = alignof(T)) : count_(count) {
    const auto page = size_t(sysconf(_SC_PAGESIZE));
    const size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    mapped_ = (bytes + page - 1) / page * page + page;
    void* const memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    base_ = static_cast<char*>(memory);
    CHECK(mprotect(base_ + mapped_ - page, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(base_ + mapped_ - page - bytes);
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() const { return data_; }
  size_t size() const { return count_; }
  T& operator[](size_t at) const { return data_[at]; }
  bool operator==(const std::vector<T>& other) const {
    return count_ == 0 || std::memcmp(data_, other.data(), count_ * sizeof(T)) == 0;
  }

 private:
  size_t count_, mapped_;
  char* base_;
  T* data_;
};

sigjmp_buf beforeWork;

void leaveWork(int) { siglongjmp(beforeWork, 1); }

/// Runs `work`. False if it touched a page that it must not. Whatever it allocated is lost then.
template <typename Work>
bool runs(const Work& work) {
  struct sigaction leave{}, segmentationBefore, busBefore;
  leave.sa_handler = leaveWork;
  sigaction(SIGSEGV, &leave, &segmentationBefore);
  sigaction(SIGBUS, &leave, &busBefore);
  const bool left = sigsetjmp(beforeWork, 1) != 0;
  if (!left) work();
  sigaction(SIGSEGV, &segmentationBefore, nullptr);
  sigaction(SIGBUS, &busBefore, nullptr);
  return !left;
}

/// Collects what went wrong with one subject.
struct Faults {
  std::string subject;
  std::vector<std::string> found;

  /// Runs `work` and then `isRight`.
  template <typename Work, typename IsRight>
  void check(const std::string& what, const Work& work, const IsRight& isRight) {
    if (!runs(work)) {
      found.push_back(subject + ": " + what + " leaves its memory");
    } else if (!isRight()) {
      found.push_back(subject + ": " + what + " is wrong");
    }
  }
};

struct Edge {
  RowShape shape;
  uint32_t tokens;
  std::vector<uint32_t> rows;

  std::string describe() const {
    std::string text(" of ");
    text += std::to_string(shape.dim) + " dimensions, " + std::to_string(shape.bits) + " bits, ";
    text += std::to_string(tokens) + " tokens, rows";
    for (const uint32_t count : rows) {
      text += ' ';
      text += std::to_string(count);
    }
    return text;
  }
};

std::vector<Edge> edges() {
  std::vector<Edge> all;
  for (const uint32_t bits : {1, 2, 4, 8}) {
    for (const uint32_t dim : {1, 3, 31, 33, 64, 65, 96, 129}) {
      const uint32_t tokens = dim % 2 == 0 ? 24 : 17;
      for (const uint32_t rows : {1, 2, 5, 6, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33}) {
        all.push_back({{dim, bits}, tokens, {rows}});
      }
      all.push_back({{dim, bits}, 1, {1, 33, 2, 16}});
      all.push_back({{dim, bits}, 8, {}});
      all.push_back({{dim, bits}, 33, {7, 1}});
    }
    all.push_back({{1023, bits}, 9, {1}});
    all.push_back({{1024, bits}, 16, {17}});
    all.push_back({{7, bits}, 512, {3}});
  }
  return all;
}

struct Documents {
  Guarded<int8_t> vectors;
  Guarded<uint16_t> scales;
  Guarded<Chunk> chunks;

  static size_t sum(const std::vector<uint32_t>& rows) {
    size_t all = 0;
    for (const uint32_t count : rows) all += count;
    return all;
  }

  Documents(const Edge& edge, Random& random)
      : vectors(sum(edge.rows) * edge.shape.bytes() + readPaddingBytes),
        scales(sum(edge.rows) + readPaddingBytes / 2),
        chunks(edge.rows.size()) {
    for (size_t at = 0; at < vectors.size(); ++at) vectors[at] = int8_t(random());
    for (size_t at = 0; at < scales.size(); ++at) scales[at] = uint16_t(0x1c00 + random() % 256);
    size_t row = 0;
    for (size_t c = 0; c < edge.rows.size(); ++c) {
      chunks[c] = {vectors.data() + row * edge.shape.bytes(), scales.data() + row, edge.rows[c]};
      row += edge.rows[c];
    }
  }
};

/// Checks all functions of a kernel on one shape, for queries of values up to `most`.
void checkEdge(const Kernel& kernel, const Edge& edge, int32_t most, Random& random, Faults& faults) {
  const auto [shape, tokens, rows] = edge;
  const std::string of = edge.describe();
  const Documents documents(edge, random);
  const size_t count = rows.size(), padded = paddedTokens(tokens);
  const Chunk* const chunks = documents.chunks.data();
  Guarded<int8_t> given(size_t(tokens) * shape.dim);
  for (size_t at = 0; at < given.size(); ++at) given[at] = int8_t(int32_t(random() % uint32_t(2 * most)) - most);
  const std::vector<int8_t> query(given.data(), given.data() + given.size());

  const PreparedQuery reference(scalarKernel, query, shape, tokens, 0.01f);
  PackedQuery packed = reference.query;
  const Guarded<uint8_t> room(kernel.packedBytes(shape, tokens), 64);
  packed.packed = room.data();
  faults.check("pack" + of, [&] { kernel.pack(given.data(), shape, tokens, room.data()); }, [] { return true; });

  std::vector<float> scores(count);
  scalarKernel.maxsim(reference.query, chunks, count, scores.data());
  const Guarded<float> ownScores(count);
  faults.check(
      "maxsim" + of, [&] { kernel.maxsim(packed, chunks, count, ownScores.data()); },
      [&] { return ownScores == scores; });
  for (size_t c = 0; c < count; ++c) {
    std::vector<float> best(padded), all(rows[c] * padded);
    std::vector<uint32_t> row(padded);
    scalarKernel.best(reference.query, chunks[c], best.data(), row.data());
    scalarKernel.similarities(reference.query, chunks[c], all.data());
    const Guarded<float> ownBest(padded), ownAll(rows[c] * padded);
    const Guarded<uint32_t> ownRow(padded);
    faults.check(
        "best" + of, [&] { kernel.best(packed, chunks[c], ownBest.data(), ownRow.data()); },
        [&] {
          return std::memcmp(ownBest.data(), best.data(), tokens * sizeof(float)) == 0 &&
                 std::memcmp(ownRow.data(), row.data(), tokens * sizeof(uint32_t)) == 0;
        });
    faults.check(
        "similarities" + of, [&] { kernel.similarities(packed, chunks[c], ownAll.data()); },
        [&] { return ownAll == all; });
  }
  if (shape.bits != 8) return;
  const Guarded<int8_t> other(shape.dim);
  for (size_t d = 0; d < shape.dim; ++d) other[d] = int8_t(random());
  const int8_t* const last = given.data() + given.size() - shape.dim;
  int32_t dot = 0;
  faults.check(
      "dot" + of, [&] { dot = kernel.dot(last, other.data(), shape.dim); },
      [&] { return dot == scalarKernel.dot(last, other.data(), shape.dim); });
}

}  // namespace

std::vector<TestedKernel> testedKernels() {
  std::vector<TestedKernel> all;
  for (const Kernel* kernel : kernels()) {
    if (kernel->requires_(cpuFeatures())) all.push_back({kernel, false});
  }
#if defined(__x86_64__)
  for (const Kernel* kernel :
       {&amxEmulatedKernel, &avx512vnniEmulatedKernel, &avxvnniEmulatedKernel, &neonEmulatedKernel}) {
    if (cpuFeatures().avx2) all.push_back({kernel, true});
  }
#endif
  return all;
}

std::vector<const CodeLoops*> testedLoops() {
  std::vector<const CodeLoops*> all{&baselineCodeLoops};
#if defined(__x86_64__)
  if (cpuFeatures().avx2) all.push_back(&avx2CodeLoops);
#endif
  return all;
}

std::vector<std::string> faultsOf(const TestedKernel& tested, Random& random) {
  Faults faults{tested.name(), {}};
  // Queries of small values are packed differently (small_values.h).
  for (const int32_t most : {128, 8}) {
    for (const Edge& edge : edges()) checkEdge(*tested.kernel, edge, most, random, faults);
  }
  return faults.found;
}

std::vector<std::string> faultsOfLoops(const CodeLoops& loops, Random& random) {
  Faults faults{std::string("loops over codes, ") + loops.name, {}};
  for (const uint32_t tokens : {32, 64}) {
    for (const uint32_t codeCount : {0, 1, 2, 3, 17}) {
      const uint32_t rows = codeCount * 2;
      const std::string of = " of " + std::to_string(tokens) + " tokens, " + std::to_string(codeCount) + " codes";
      const Guarded<uint8_t> entries(8 * tokens, 64), margins(tokens, 64), least(tokens, 64);
      const Guarded<uint8_t> tables(size_t(tokens) * subspaces * codewords, 64),
          residuals(size_t(rows) * residualBytes);
      const Guarded<uint32_t> codes(codeCount);
      for (const auto* bytes : {&entries, &margins, &least, &tables, &residuals}) {
        for (size_t at = 0; at < bytes->size(); ++at) (*bytes)[at] = uint8_t(random() % 4);
      }
      // More token vectors than there are rows, which are ignored.
      for (size_t k = 0; k < codeCount; ++k) codes[k] = uint32_t(random() % 8) | 3u << centroidBits;
      const ResidualTable table{tokens, entries.data(), 7, 200, tables.data(), margins.data()};
      const std::span<const uint32_t> all(codes.data(), codeCount);
      const CodedChunk chunk{all, residuals.data(), rows};
      uint32_t sum = 0;
      faults.check(
          "sumOfMaxima" + of, [&] { sum = loops.sumOfMaxima(table, all); },
          [&] { return sum == baselineCodeLoops.sumOfMaxima(table, all); });
      faults.check(
          "sumOfResidualMaxima" + of, [&] { sum = loops.sumOfResidualMaxima(table, chunk); },
          [&] { return sum == baselineCodeLoops.sumOfResidualMaxima(table, chunk); });
      std::vector<TableHit> hits, expected;
      const uint32_t entryRows = std::min(codeCount, 8u);
      const uint8_t* const last = entries.data() + (8 - entryRows) * tokens;
      faults.check(
          "collectHits" + of, [&] { loops.collectHits(last, entryRows, tokens, least.data(), hits); },
          [&] {
            baselineCodeLoops.collectHits(last, entryRows, tokens, least.data(), expected);
            return hits.size() == expected.size() &&
                   std::equal(hits.begin(), hits.end(), expected.begin(), [](const TableHit& a, const TableHit& b) {
                     return a.code == b.code && a.token == b.token && a.entry == b.entry;
                   });
          });
      const Guarded<float> similarities(size_t(entryRows) * tokens), floors(tokens), factors(tokens);
      for (const auto* floats : {&similarities, &floors, &factors}) {
        for (size_t at = 0; at < floats->size(); ++at) (*floats)[at] = float(random() % 64);
      }
      const Guarded<uint8_t> quantised(size_t(entryRows) * tokens, 64);
      std::vector<uint8_t> expectedEntries(quantised.size());
      const auto quantise = [&](const CodeLoops& of, uint8_t* out) {
        of.quantizeEntries(similarities.data(), entryRows, tokens, tokens, floors.data(), factors.data(), out, tokens);
      };
      faults.check(
          "quantizeEntries" + of, [&] { quantise(loops, quantised.data()); },
          [&] {
            quantise(baselineCodeLoops, expectedEntries.data());
            return quantised == expectedEntries;
          });
    }
  }
  return faults.found;
}

namespace {

/// Copies of some values, which end before a page that nobody may touch.
template <typename T>
std::unique_ptr<Guarded<T>> guardedCopy(const std::vector<T>& values) {
  auto copy = std::make_unique<Guarded<T>>(values.size());
  std::copy(values.begin(), values.end(), copy->data());
  return copy;
}

std::vector<float> randomFloats(Random& random, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = float(random() % 64) / 32 - 1;
  return values;
}

/// The values that the loops make of some rows.
struct RowLoopsRun {
  std::vector<int32_t> products;
  size_t nearest = 0;
  std::vector<float> joined, gradients, components, gradient;

  bool operator==(const RowLoopsRun&) const = default;
};

}  // namespace

std::vector<const RowLoops*> testedRowLoops() {
  std::vector<const RowLoops*> all{&baselineRowLoops};
#if defined(__x86_64__)
  if (cpuFeatures().avx2) all.push_back(&avx2RowLoops);
#endif
  return all;
}

std::vector<std::string> faultsOfRowLoops(const RowLoops& loops, Random& random) {
  Faults faults{loops.name, {}};
  for (const size_t dim : {1, 33, 64}) {
    for (const size_t rows : {1, 2, 4, 5, 9, 33, 34}) {
      const size_t width = paddedComponents(dim);
      std::vector<int16_t> rounded(rows * width);
      for (int16_t& value : rounded) value = int16_t(random() % 255) - 127;
      const auto values = guardedCopy(rounded);
      const auto own = randomFloats(random, rows), other = randomFloats(random, rows);
      const auto sizes = guardedCopy(std::vector<float>(rows, 2)), others = guardedCopy(other);
      const auto moment = guardedCopy(randomFloats(random, dim * width));
      const auto errors = guardedCopy(randomFloats(random, gradientRows * width));
      const auto vector = guardedCopy(randomFloats(random, width)), cost = guardedCopy(randomFloats(random, width));
      const auto start = randomFloats(random, width);
      const auto runOf = [&](const RowLoops& of) {
        const Guarded<int32_t> products(rows * rows);
        const auto joined = guardedCopy(own), gradient = guardedCopy(start);
        const auto components = guardedCopy(std::vector<float>(width, 1));
        const Guarded<float> gradients(gradientRows * width);
        RowLoopsRun run;
        of.products(values->data(), rows, width, products.data());
        run.nearest = of.nearest(joined->data(), others->data(), rows);
        of.join(joined->data(), others->data(), sizes->data(), rows, 3, 4, 0.5f);
        of.gradients(moment->data(), dim, width, errors->data(), gradients.data());
        // The matrix of `refine` is square.
        if (dim == width) {
          of.refine(moment->data(), width, 3,
                    {vector->data(), cost->data(), components->data(), gradient->data(), 0.25f});
        }
        run.products.assign(products.data(), products.data() + products.size());
        run.joined.assign(joined->data(), joined->data() + rows);
        run.gradients.assign(gradients.data(), gradients.data() + gradients.size());
        run.components.assign(components->data(), components->data() + width);
        run.gradient.assign(gradient->data(), gradient->data() + width);
        return run;
      };
      RowLoopsRun found;
      const std::string of = Edge{RowShape(uint32_t(dim)), 0, {uint32_t(rows)}}.describe();
      faults.check(
          "one of the loops over rows" + of, [&] { found = runOf(loops); },
          [&] { return found == runOf(baselineRowLoops); });
    }
  }
  return faults.found;
}

std::vector<std::string> faultsOfRows(Random& random) {
  Faults faults{"stored rows", {}};
  for (const uint32_t bits : {1, 2, 4, 8}) {
    for (const uint32_t dim : {1, 2, 3, 31, 33, 129}) {
      std::vector<uint16_t> halves(size_t(dim) * dim, floatToHalf(0.125f));
      const RowMoment moment(halves, dim);
      for (const uint32_t rows : {0, 1, 3, 4, 5}) {
        const RowShape shape(dim, bits);
        const std::string of = Edge{shape, 0, {rows}}.describe();
        const Guarded<float> vectors(size_t(rows) * dim), scales(rows), mean(dim), factors(2 * size_t(dim));
        const Guarded<int8_t> stored(rows * shape.bytes());
        for (const auto* floats : {&vectors, &mean, &factors}) {
          for (size_t at = 0; at < floats->size(); ++at) (*floats)[at] = float(random() % 64) - 32.5f;
        }
        const std::span<float> all(vectors.data(), vectors.size());
        for (const RowMoment* given : {static_cast<const RowMoment*>(nullptr), bits == 8 ? nullptr : &moment}) {
          faults.check(
              "quantizeRows" + of,
              [&] { quantizeRows(all, shape, given, {stored.data(), stored.size()}, {scales.data(), rows}); },
              [&] {
                return std::all_of(scales.data(), scales.data() + rows, [](float s) { return std::isfinite(s); });
              });
        }
        const Guarded<float> pooled(pooledRows(rows, 2) * dim);
        const Guarded<uint32_t> representatives(pooledRows(rows, 2)), pooledOf(rows);
        faults.check(
            "poolRows" + of,
            [&] {
              poolRows(all, dim, 2,
                       {{pooled.data(), pooled.size()},
                        {representatives.data(), representatives.size()},
                        {pooledOf.data(), rows}});
            },
            [&] {
              return std::all_of(pooledOf.data(), pooledOf.data() + rows,
                                 [&](uint32_t row) { return row < representatives.size(); });
            });
        faults.check(
            "rotateRows" + of, [&] { rotateRows(all, dim, {mean.data(), dim}, {factors.data(), factors.size()}); },
            [] { return true; });
      }
    }
  }
  return faults.found;
}

std::vector<TestedKernel> faultyKernels() {
  static Kernel readsNoChunk = scalarKernel, readsBehind = scalarKernel, writesBehind = scalarKernel,
                isWrong = scalarKernel;
  readsNoChunk.name = "reads the first of no chunks";
  readsNoChunk.maxsim = [](const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
    if (*const_cast<const volatile uint32_t*>(&chunks->rows) > 0) scalarKernel.maxsim(query, chunks, count, scores);
  };
  readsBehind.name = "reads behind the padding";
  readsBehind.best = [](const PackedQuery& query, const Chunk& chunk, float* best, uint32_t* rows) {
    const size_t bytes = chunk.rows * RowShape(query.dim, query.rowBits).bytes() + readPaddingBytes;
    static_cast<void>(*const_cast<const volatile int8_t*>(chunk.vectors + bytes));
    scalarKernel.best(query, chunk, best, rows);
  };
  writesBehind.name = "writes behind the scores";
  writesBehind.maxsim = [](const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
    scalarKernel.maxsim(query, chunks, count, scores);
    *static_cast<volatile float*>(scores + count) = 0;
  };
  isWrong.name = "is wrong in the last of 33 rows";
  isWrong.similarities = [](const PackedQuery& query, const Chunk& chunk, float* out) {
    scalarKernel.similarities(query, chunk, out);
    if (chunk.rows == 33) out[32 * size_t(query.tokensPadded)] += 1.0f;
  };
  return {{&readsNoChunk, false}, {&readsBehind, false}, {&writesBehind, false}, {&isWrong, false}};
}

}  // namespace test
}  // namespace maxsimd
