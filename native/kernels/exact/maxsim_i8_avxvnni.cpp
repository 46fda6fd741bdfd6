// AVX-VNNI: 8 query tokens a register, four dimensions a lane; vpdpbusd as in maxsim_i8_avx512vnni.cpp.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c")))

#include <immintrin.h>

#include "kernels/exact/dot256.h"
#include "kernels/exact/lanes256.h"

/// sum += dot4(document u8, query s8) per lane. The native tests define it before, as an emulation.
#if !defined(VPDPBUSD)
#define VPDPBUSD(sum, query, document) __asm__("%{vex%} vpdpbusd %1, %2, %0" : "+x"(sum) : "x"(query), "x"(document))
#endif

namespace maxsimd {
namespace {

template <uint32_t rowBits>
struct AvxVnni : Bytes256<rowBits> {
  TARGET_INLINE void accumulate(__m256i& sum, __m256i query, __m256i document) { VPDPBUSD(sum, query, document); }
};

template <uint32_t rowBits>
using Rows = LaneKernel<AvxVnni<rowBits>>;

}  // namespace

const Kernel avxvnniKernel =
    ByRowBits<Rows>::kernel("avxvnni", [](const CpuFeatures& cpu) { return cpu.avxvnni; }, dot, &avx2CodeLoops);

}  // namespace maxsimd

#endif
