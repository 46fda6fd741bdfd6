// The table of kernels, best first, and the choice from it.
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

/// All kernels of this build, best first. The last one runs everywhere.
std::span<const Kernel* const> kernels();

/// The kernel of this name; "auto" is the first one that this machine supports. nullptr if the name is unknown or not
/// supported here: the caller reports an error and never takes another kernel.
const Kernel* findKernel(std::string_view name);

}  // namespace maxsimd
