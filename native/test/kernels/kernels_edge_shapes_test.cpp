// The edge shapes under the sanitizers.
#include "test/kernels/edge_shapes.h"

namespace maxsimd::test {
namespace {

void checkNone(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) std::printf("  %s\n", fault.c_str());
  CHECK(faults.empty());
}

const Case edge("kernels", "take no chunk, one row, odd dimensions and blocks that are not full", [](Random& random) {
  for (const TestedKernel& tested : testedKernels()) {
    std::printf("  %s\n", tested.name().c_str());
    checkNone(faultsOf(tested, random));
  }
  for (const CodeLoops* loops : testedLoops()) checkNone(faultsOfLoops(*loops, random));
  for (const RowLoops* loops : testedRowLoops()) checkNone(faultsOfRowLoops(*loops, random));
  checkNone(faultsOfRows(random));
});

}  // namespace
}  // namespace maxsimd::test
