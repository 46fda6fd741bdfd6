// The amx kernel's source over emulated tiles and registers.
#if defined(__x86_64__)

#define EMULATED
#define TARGET __attribute__((target("avx2,f16c")))
#include "test/kernels/register512_emulation.h"
#include "test/kernels/tile_emulation.h"

#define amxKernel amxEmulatedKernel
#include "kernels/exact/maxsim_i8_amx.cpp"

#endif
