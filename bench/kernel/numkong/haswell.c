#if defined(__x86_64__)
#define NK_TARGET_HASWELL 1
#include "backend.h"

NUMKONG_PEER(haswell, f32, 0);
NUMKONG_PEER(haswell, bf16, 0);
NUMKONG_PEER(haswell, f16, 0);

#endif
