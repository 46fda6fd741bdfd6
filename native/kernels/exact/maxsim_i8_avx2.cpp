// AVX2: 8 query tokens a register.
//
// For most queries both sides are 16-bit integers under vpmaddwd, two dimensions a lane. A pair is at most 2 * 128 *
// 128 and a dot product at most 2^24, so nothing saturates. A query of small values (small_values.h) is multiplied as
// bytes, four dimensions a lane, in 0.6 of the time, because four times as many products are added before a lane has to
// be widened.
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,f16c")))

#include <immintrin.h>

#include "kernels/exact/dot256.h"
#include "kernels/exact/lanes256.h"
#include "kernels/small_values.h"

namespace maxsimd {
namespace {

struct Words : Lanes256 {
  using Element = int16_t;
  static constexpr uint32_t group = 2;
  static constexpr uint32_t bits = 8;
  static constexpr int32_t bias = 0;
  static constexpr uint32_t strip = 64;

  TARGET_INLINE void convert(const int8_t* from, int16_t* out) {
    for (uint32_t d = 0; d < strip; d += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + d));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + d), _mm256_cvtepi8_epi16(bytes));
    }
  }

  /// sum += dot2(query, document) per lane. Written as assembly, because g++ 12 spills the sums of the intrinsics (82
  /// instead of 53 ns a row of 128 dimensions against 32 tokens on Zen 4).
  TARGET_INLINE void accumulate(__m256i& sum, __m256i query, __m256i document) {
    __m256i product;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(query), "x"(document));
  }
  /// Both products come before both sums, because additions in between take the units of multiplications (0.96 of the
  /// time on Zen 4). The document's register is overwritten.
  TARGET_INLINE void accumulateBoth(__m256i& a, __m256i& b, __m256i queryA, __m256i queryB, __m256i document) {
    __m256i product;
    __asm__("vpmaddwd %3, %4, %2\n\tvpmaddwd %3, %5, %3\n\tvpaddd %2, %0, %0\n\tvpaddd %3, %1, %1"
            : "+x"(a), "+x"(b), "=&x"(product), "+x"(document)
            : "x"(queryA), "x"(queryB));
  }
};

template <uint32_t rowBits>
struct Bytes : Bytes256<rowBits> {
  static constexpr uint32_t tileRows = 3;
  static constexpr uint32_t together = 4;

  /// products = the sums of pairs of document u8 * query s8, in 16 bits.
  TARGET_INLINE void multiply(__m256i& products, __m256i query, __m256i document) {
    __asm__("vpmaddubsw %2, %1, %0" : "=x"(products) : "x"(document), "x"(query));
  }
  TARGET_INLINE void accumulate(__m256i& products, __m256i query, __m256i document) {
    __m256i more;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(products), "=&x"(more) : "x"(document), "x"(query));
  }
  TARGET_INLINE void accumulateBoth(__m256i& a, __m256i& b, __m256i queryA, __m256i queryB, __m256i document) {
    __m256i more;
    __asm__("vpmaddubsw %4, %3, %2\n\tvpmaddubsw %5, %3, %3\n\tvpaddw %2, %0, %0\n\tvpaddw %3, %1, %1"
            : "+x"(a), "+x"(b), "=&x"(more), "+x"(document)
            : "x"(queryA), "x"(queryB));
  }
  /// sum += both halves of products, per lane. The ones come from memory, because no register is left for them.
  TARGET_INLINE void addPairs(__m256i& sum, __m256i products) {
    alignas(32) static constexpr int16_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    __asm__("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "+x"(products) : "m"(ones));
  }
};

using WordKernel = LaneKernel<Words>;
using ByteKernel = LaneKernel<Bytes<8>>;

/// Stands before a packed query for rows of 8 bits and says which of the two kernels packed it.
struct alignas(64) Header {
  bool small;
};

/// Rows of few bits: their components + bias are at most 30, so that eight products with any query stay below 2^15.
template <uint32_t rowBits>
struct Rows : LaneKernel<Bytes<rowBits>> {};

template <>
struct Rows<8> {
  static size_t packedBytes(RowShape shape, uint32_t tokens) {
    return sizeof(Header) + std::max(WordKernel::packedBytes(shape, tokens), ByteKernel::packedBytes(shape, tokens));
  }

  static void pack(const int8_t* vectors, RowShape shape, uint32_t tokens, void* packed) {
    auto* header = static_cast<Header*>(packed);
    header->small = areSmall(vectors, shape.dim, tokens);
    (header->small ? ByteKernel::pack : WordKernel::pack)(vectors, shape, tokens, header + 1);
  }

  static bool isSmall(const PackedQuery& query) { return static_cast<const Header*>(query.packed)->small; }

  static PackedQuery behindHeader(PackedQuery query) {
    query.packed = static_cast<const Header*>(query.packed) + 1;
    return query;
  }

  static void maxsim(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores) {
    (isSmall(query) ? ByteKernel::maxsim : WordKernel::maxsim)(behindHeader(query), chunks, count, scores);
  }

  static void best(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rows) {
    (isSmall(query) ? ByteKernel::best : WordKernel::best)(behindHeader(query), chunk, similarities, rows);
  }

  static void similarities(const PackedQuery& query, const Chunk& chunk, float* out) {
    (isSmall(query) ? ByteKernel::similarities : WordKernel::similarities)(behindHeader(query), chunk, out);
  }
};

}  // namespace

const Kernel avx2Kernel =
    ByRowBits<Rows>::kernel("avx2", [](const CpuFeatures& cpu) { return cpu.avx2; }, dot, &avx2CodeLoops);

}  // namespace maxsimd

#endif
