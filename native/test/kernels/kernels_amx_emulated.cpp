// The amx kernel's source over emulated tile instructions.
#define MAXSIMD_TILES_HEADER "test/kernels/tile_emulation.h"
#include "kernels/exact/maxsim_i8_amx.cpp"
