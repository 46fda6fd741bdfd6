#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#define REGISTER_BYTES 32

#include "kernels/encoding/row_loops_body.h"

namespace maxsimd {

const RowLoops avx2RowLoops = loopsOf("avx2");

}  // namespace maxsimd

#endif
