// Runs every kernel on the shapes where kernels go wrong: no chunk, one row, odd dimensions, blocks that are not full.
// Memory ends exactly where a kernel may read or write no further, and behind it lies a page that nobody may touch.
//
// Kernels of instruction sets that this machine lacks run over emulated instructions. The native tests and a unit test
// (test/native/kernels/kernel-shapes.test.ts) both run this.
#pragma once

#include "kernels/dispatch.h"
#include "kernels/encoding/row_loops.h"
#include "test/check.h"

#include <string>
#include <vector>

namespace maxsimd::test {

struct TestedKernel {
  const Kernel* kernel;
  bool emulated;

  std::string name() const { return std::string(kernel->name) + (emulated ? " (emulated)" : ""); }
};

/// The kernels of this machine, and those that can be emulated here.
std::vector<TestedKernel> testedKernels();

/// The loops over codes, and those over the rows of an encoder, of this machine.
std::vector<const CodeLoops*> testedLoops();
std::vector<const RowLoops*> testedRowLoops();

/// The faults of a kernel, one line for each shape and function.
std::vector<std::string> faultsOf(const TestedKernel& tested, Random& random);

/// Likewise of the loops and of the functions that make stored rows.
std::vector<std::string> faultsOfLoops(const CodeLoops& loops, Random& random);
std::vector<std::string> faultsOfRowLoops(const RowLoops& loops, Random& random);
std::vector<std::string> faultsOfRows(Random& random);

/// A kernel for each fault that `faultsOf` must find.
std::vector<TestedKernel> faultyKernels();

}  // namespace maxsimd::test
