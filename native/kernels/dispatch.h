// The ordered table of kernels and the one choice made from it.
#pragma once

#include "kernels/contract.h"

#include <span>
#include <string_view>

namespace maxsimd {

extern const Kernel scalarKernel;
#if defined(__x86_64__)
extern const Kernel avx2Kernel;
extern const Kernel avxvnniKernel;
extern const Kernel avx512vnniKernel;
extern const Kernel amxKernel;
#elif defined(__aarch64__)
extern const Kernel neonKernel;
#endif

const CpuFeatures& cpuFeatures();

/// Every kernel compiled in, best first; the last one runs anywhere.
std::span<const Kernel* const> kernels();

/// "auto" = the first supported one. nullptr for a name that is unknown or not supported here: the caller
/// turns it into an error, never into another kernel.
const Kernel* findKernel(std::string_view name);

}  // namespace maxsimd
