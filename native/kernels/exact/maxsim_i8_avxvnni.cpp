// AVX-VNNI: 8 query tokens a register, four dimensions a lane; vpdpbusd as in maxsim_i8_avx512vnni.cpp.
//
// AVX-512 VNNI has the same operation on 256 bits in another encoding. The native tests compile this source a second
// time with MAXSIMD_AVXVNNI_AS_EVEX, so that its arithmetic runs on machines without AVX-VNNI.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c")))

#include <immintrin.h>

#include "kernels/exact/dot256.h"
#include "kernels/exact/lanes256.h"

#if defined(MAXSIMD_AVXVNNI_AS_EVEX)
#define ENCODING "%{evex%} "
#else
#define ENCODING "%{vex%} "
#endif

namespace maxsimd {
namespace {

template <uint32_t rowBits>
struct AvxVnni : Bytes256<rowBits> {
  /// sum += dot4(document u8, query s8) per lane.
  TARGET_INLINE void accumulate(__m256i& sum, __m256i query, __m256i document) {
    __asm__(ENCODING "vpdpbusd %1, %2, %0" : "+x"(sum) : "x"(query), "x"(document));
  }
};

template <uint32_t rowBits>
using Rows = LaneKernel<AvxVnni<rowBits>>;

}  // namespace

#if defined(MAXSIMD_AVXVNNI_AS_EVEX)
extern const Kernel avxvnniAsEvexKernel;
const Kernel avxvnniAsEvexKernel = ByRowBits<Rows>::kernel(
    "avxvnni in the encoding of AVX-512", [](const CpuFeatures& cpu) { return cpu.avx512vnni; }, dot, &avx2CodeLoops);
#else
const Kernel avxvnniKernel =
    ByRowBits<Rows>::kernel("avxvnni", [](const CpuFeatures& cpu) { return cpu.avxvnni; }, dot, &avx2CodeLoops);
#endif

}  // namespace maxsimd

#endif
