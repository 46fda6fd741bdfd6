#if defined(__x86_64__)
#define NK_TARGET_HASWELL 1
#define NK_TARGET_SKYLAKE 1
#define NK_TARGET_ICELAKE 1
#define NK_TARGET_GENOA 1
#include "backend.h"

NUMKONG_PEER(genoa, bf16, 0);

#endif
