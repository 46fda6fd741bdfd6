// The avx512vnni kernel's source over emulated registers.
#if defined(__x86_64__)

#define EMULATED
#define TARGET __attribute__((target("avx2,f16c")))
#include "test/kernels/register512_emulation.h"

#define avx512vnniKernel avx512vnniEmulatedKernel
#include "kernels/exact/maxsim_i8_avx512vnni.cpp"

#endif
