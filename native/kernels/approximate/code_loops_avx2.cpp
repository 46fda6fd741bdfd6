#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#define REGISTER_BYTES 32

#include "kernels/approximate/code_loops_body.h"

namespace maxsimd {

const CodeLoops avx2CodeLoops = codeLoops("avx2");

}  // namespace maxsimd

#endif
