#if defined(__aarch64__)
#define NK_TARGET_NEON 1
#define NK_TARGET_NEONSDOT 1
#include "backend.h"

NUMKONG_PEER(neonsdot, f32, 0);
NUMKONG_PEER(neonsdot, bf16, 0);
NUMKONG_PEER(neonsdot, f16, 0);

#endif
