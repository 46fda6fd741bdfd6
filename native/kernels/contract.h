// MaxSim of int8 queries with token vectors of 1, 2, 4 or 8 bits a component (rows.h): the contract between the kernels
// and everything above them.
//
//   dot(i,j)  = sum over d of query[i][d] * component[j][d]                exact, int32
//   sim(i,j)  = float(dot(i,j)) * f16_to_f32(documentScale[j])             one rounding
//   best(i)   = max over j of sim(i,j); its row is the lowest j that attains it
//   term(i)   = best(i) * queryScale[i] + offset[i]                        two roundings, never fused
//   score     = 16 partial sums p[l] over i = l, l+16, l+32, ... in order,
//               then p[l] += p[l+8] (l < 8), += p[l+4] (l < 4), += p[l+2] (l < 2), += p[l+1] (l < 1)
//
// |dot| <= 1024 * 128 * 128 = 2^24, so float(dot) is exact; every value of int8 is allowed on both sides
// (-128 too). With exact dots and a stated order of the few float operations, all kernels give the same
// bits; the scalar kernel is the reference. The build sets -ffp-contract=off for that reason.
//
// Buffers: document rows lie one behind another, as they are stored, and need no alignment. A kernel may read up to
// `readPaddingBytes` past the last row of a chunk and past its last scale (values unused). Queries are
// packed once per kernel (`pack`) into 64-byte-aligned memory. Kernels allocate nothing, start no threads
// and touch no files.
#pragma once

#include "kernels/approximate/code_loops.h"
#include "kernels/rows.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace maxsimd {

inline constexpr uint32_t dimMax = 1024;
inline constexpr size_t readPaddingBytes = 64;

/// One chunk's token matrix: `rows` rows as they are stored (rows.h) and `rows` f16 scales. rows >= 1.
struct Chunk {
  const int8_t* vectors;
  const uint16_t* scales;
  uint32_t rows;
};

/// A query in the layout of one kernel. `tokensPadded` is `tokens` rounded up to a multiple of 16.
struct PackedQuery {
  uint32_t dim;
  uint32_t tokens;
  uint32_t tokensPadded;
  /// 64-byte aligned, written by the kernel's `pack`.
  const void* packed;
  /// f32 [tokensPadded]; 0 behind `tokens`.
  const float* scales;
  /// f32 [tokensPadded]; 0 behind `tokens`.
  const float* offsets;
  /// The bits of the document rows that it is multiplied with.
  uint32_t rowBits = 8;
};

/// Instruction sets of this machine that the operating system supports: it saves their registers (CPUID and XCR0 on
/// x86, HWCAP on Arm), and lets this process use AMX, for which a process must ask.
struct CpuFeatures {
  bool avx2;
  bool avx512vnni;
  bool avxvnni;
  bool amx;
  bool dotprod;
};

struct Kernel {
  const char* name;
  bool (*requires_)(const CpuFeatures& cpu);
  /// How many bytes `pack` writes.
  size_t (*packedBytes)(RowShape shape, uint32_t tokens);
  /// For rows of this shape. `vectors` is int8 [tokens x dim], row-major.
  void (*pack)(const int8_t* vectors, RowShape shape, uint32_t tokens, void* packed);
  /// scores[c] of each of `count` chunks; prefetches chunks[c + 1] while it works on c.
  void (*maxsim)(const PackedQuery& query, const Chunk* chunks, size_t count, float* scores);
  /// best(i) and its row for one chunk; both arrays are [tokensPadded].
  void (*best)(const PackedQuery& query, const Chunk& chunk, float* similarities, uint32_t* rows);
  /// sim(i,j) of one chunk as f32 [chunk.rows x tokensPadded].
  void (*similarities)(const PackedQuery& query, const Chunk& chunk, float* out);
  /// The dot product of two int8 [dim] vectors. Reads nothing past them.
  int32_t (*dot)(const int8_t* a, const int8_t* b, uint32_t dim);
  /// Calls of this kernel's functions since the process started. Tests use it to prove which kernel ran.
  std::atomic<uint64_t>* calls;
  /// The loops over codes for this kernel's instruction set.
  const CodeLoops* loops;
};

inline constexpr uint32_t paddedTokens(uint32_t tokens) { return (tokens + 15) & ~15u; }

/// The score of the definition above from best [tokensPadded]. All kernels use it.
inline float finishScore(const PackedQuery& query, const float* best) {
  float partial[16] = {};
  for (uint32_t i = 0; i < query.tokensPadded; i += 16) {
    for (uint32_t l = 0; l < 16; ++l) partial[l] += best[i + l] * query.scales[i + l] + query.offsets[i + l];
  }
  for (uint32_t width = 8; width > 0; width /= 2) {
    for (uint32_t l = 0; l < width; ++l) partial[l] += partial[l + width];
  }
  return partial[0];
}

}  // namespace maxsimd
