// The amx kernel's source over emulated tile instructions.
#define MAXSIMD_TILES_HEADER "test/tile_emulation.h"
#include "kernels/amx.cpp"
