#if defined(__x86_64__)
#define NK_TARGET_HASWELL 1
#define NK_TARGET_ALDER 1
#include "backend.h"

NUMKONG_PEER(alder, f32, 0);
NUMKONG_PEER(alder, bf16, 0);
NUMKONG_PEER(alder, f16, 0);

#endif
