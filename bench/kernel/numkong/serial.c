#include "backend.h"

NUMKONG_PEER(serial, f32, 0);
NUMKONG_PEER(serial, bf16, 0);
