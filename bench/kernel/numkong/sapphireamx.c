#if defined(__x86_64__)
#define NK_TARGET_HASWELL 1
#define NK_TARGET_SKYLAKE 1
#define NK_TARGET_ICELAKE 1
#define NK_TARGET_GENOA 1
#define NK_TARGET_SAPPHIREAMX 1
#include "backend.h"

NUMKONG_PEER(sapphireamx, f32, 1);
NUMKONG_PEER(sapphireamx, bf16, 1);
NUMKONG_PEER(sapphireamx, f16, 1);

#endif
