// AVX-512 VNNI: 16 query tokens a register, four dimensions a lane.
//
// vpdpbusd multiplies unsigned by signed bytes. So the sign bits of document rows are flipped, and accumulators start
// at -128 * sum(query). Bounds: |sum of four u8*s8| <= 4*255*128 and |accumulator| <= 1024*255*128 + 1024*128*128 <
// 2^31. vpdpbusd does not saturate.
#if defined(__x86_64__)

#if !defined(TARGET)
#define TARGET __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#endif

#include <immintrin.h>

#include "kernels/exact/lanes256.h"
#include "kernels/exact/lanes512.h"

/// sum += dot4(document u8, query s8) per lane. Written as assembly, because g++ 12 adds register copies and spills to the
/// intrinsic. The native tests define it before, as an emulation.
#if !defined(VPDPBUSD)
#define VPDPBUSD(sum, query, document) __asm__("vpdpbusd %1, %2, %0" : "+v"(sum) : "v"(query), "v"(document))
#endif

namespace maxsimd {
namespace {

template <uint32_t rowBits>
struct Avx512Vnni : Lanes512 {
  using Element = uint8_t;
  static constexpr uint32_t group = 4;
  static constexpr uint32_t bits = rowBits;
  static constexpr int32_t bias = rowBits == 8 ? 128 : componentMost(rowBits);
  static constexpr uint32_t strip = 64;

  TARGET_INLINE void convert(const int8_t* from, uint8_t* out) {
    if constexpr (rowBits == 8) {
      _mm512_store_si512(out, _mm512_xor_si512(_mm512_loadu_si512(from), _mm512_set1_epi8(int8_t(0x80))));
    } else {
      _mm512_store_si512(out, twiceCodes512<rowBits>(from));
    }
  }

  TARGET_INLINE void accumulate(__m512i& sum, __m512i query, __m512i document) { VPDPBUSD(sum, query, document); }
};

/// Eight tokens. Takes half the time of sixteen on processors that split 512-bit operations (Zen 4).
struct Avx512VnniNarrow : Lanes256 {
  TARGET_INLINE __m256i narrow(__m512i document) { return _mm512_castsi512_si256(document); }
  TARGET_INLINE void accumulate(__m256i& sum, __m256i query, __m256i document) { VPDPBUSD(sum, query, document); }
};

template <uint32_t rowBits>
using Rows = LaneKernel<Avx512Vnni<rowBits>, Avx512VnniNarrow>;

}  // namespace

const Kernel avx512vnniKernel =
    ByRowBits<Rows>::kernel("avx512vnni", [](const CpuFeatures& cpu) { return cpu.avx512vnni; }, dot, &avx2CodeLoops);

}  // namespace maxsimd

#endif
