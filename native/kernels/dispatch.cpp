#include "kernels/dispatch.h"

namespace maxsimd {
namespace {

const Kernel* const table[] = {
#if defined(__x86_64__)
    &amxKernel,    &avx512vnniKernel, &avxvnniKernel, &avx2Kernel,
#elif defined(__aarch64__)
    &neonKernel,
#endif
    &scalarKernel,
};

}  // namespace

std::span<const Kernel* const> kernels() { return table; }

const Kernel* findKernel(std::string_view name) {
  for (const Kernel* kernel : table) {
    if ((name == "auto" || name == kernel->name) && kernel->requires_(cpuFeatures())) return kernel;
  }
  return nullptr;
}

}  // namespace maxsimd
