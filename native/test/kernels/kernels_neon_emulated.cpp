// The neon kernel's source over emulated registers, on x86.
#if defined(__x86_64__)

#define EMULATED
#define TARGET
#include "test/kernels/neon_emulation.h"

#include "kernels/dispatch.h"

namespace maxsimd {
#define neonKernel neonEmulatedKernel
extern const Kernel neonKernel;
}  // namespace maxsimd
#include "kernels/exact/maxsim_i8_neon.cpp"

#endif
