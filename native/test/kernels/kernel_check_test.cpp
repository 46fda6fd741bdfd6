// The engine uses only kernels that agree with scalar.
#include "runtime/kernel_check.h"
#include "kernels/dispatch.h"
#include "test/check.h"

namespace maxsimd::test {
namespace {

const Case trusted("kernels", "a kernel that differs from scalar in one score is not trusted", [](Random&) {
  for (const Kernel* kernel : kernels()) {
    if (kernel->requires_(cpuFeatures())) CHECK(agreesWithScalar(*kernel));
  }
  Kernel wrong = scalarKernel;
  wrong.maxsim = [](const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
    scalarKernel.maxsim(query, chunks, count, scores);
    scores[count - 1] += 1.0f;
  };
  CHECK(!agreesWithScalar(wrong));
  wrong.maxsim = scalarKernel.maxsim;
  CHECK(agreesWithScalar(wrong));
  wrong.similarities = [](const PackedQuery& query, const Chunk& chunk, float* out) {
    scalarKernel.similarities(query, chunk, out);
    out[query.tokens - 1] += 1.0f;
  };
  CHECK(!agreesWithScalar(wrong));
});

}  // namespace
}  // namespace maxsimd::test
