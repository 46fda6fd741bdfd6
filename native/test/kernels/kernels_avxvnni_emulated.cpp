// The avxvnni kernel's source with an emulated VPDPBUSD.
#if defined(__x86_64__)

#define EMULATED
#define TARGET __attribute__((target("avx2,f16c")))
#include "test/kernels/register512_emulation.h"

#define avxvnniKernel avxvnniEmulatedKernel
#include "kernels/exact/maxsim_i8_avxvnni.cpp"

#endif
