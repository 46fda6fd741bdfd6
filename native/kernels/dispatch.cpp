#include "kernels/dispatch.h"

#include <iterator>

namespace maxsimd {
namespace {

const Kernel* const table[] = {
#if defined(__x86_64__)
    &amxKernel,
    &avx512vnniKernel,
    &avxvnniKernel,
    &avx2Kernel,
#elif defined(__aarch64__)
    &neonKernel,
#endif
    &scalarKernel,
};

const FloatKernel* const floatTable[] = {
#if defined(__x86_64__)
    &avx512FloatKernel,
    &avx2FloatKernel,
#endif
    &scalarFloatKernel,
};

template <typename Table>
auto find(const Table& table, std::string_view name) {
  for (const auto* kernel : table) {
    if ((name == "auto" || name == kernel->name) && kernel->requires_(cpuFeatures())) return kernel;
  }
  return decltype(+*std::begin(table)){};
}

}  // namespace

std::span<const Kernel* const> kernels() { return table; }
const Kernel* findKernel(std::string_view name) { return find(table, name); }

std::span<const FloatKernel* const> floatKernels() { return floatTable; }
const FloatKernel* findFloatKernel(std::string_view name) { return find(floatTable, name); }

}  // namespace maxsimd
