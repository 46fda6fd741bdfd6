// The device's kernels: they score all admitted chunks and select the best k.
#pragma once

#include "device/cuda/device_warp.cuh"
#include "device/cuda/selection.h"
#include "device/cuda/warp_program.h"

#include <algorithm>
#include <iterator>

namespace maxsimd::cuda {

inline constexpr uint32_t warpsPerBlock = 8;
inline constexpr uint32_t threadsPerBlock = 32 * warpsPerBlock;
inline constexpr uint32_t choosers = 256;

/// A bit a chunk; null = all.
__device__ inline bool isAdmitted(const uint32_t* admitted, uint32_t chunk) {
  return admitted == nullptr || (admitted[chunk / 32] >> (chunk % 32) & 1) != 0;
}

/// Each warp scores one admitted chunk after the other, in steps of all warps, so that neighbouring warps read
/// neighbouring chunks. Scores of chunks that are not admitted are not written.
template <uint32_t Bits, uint32_t Steps, uint32_t AtOnce>
__global__ void __launch_bounds__(threadsPerBlock)
    scoreChunks(Documents documents, Queries queries, const uint32_t* __restrict__ admitted,
                float* __restrict__ scores) {
  const uint32_t warps = gridDim.x * warpsPerBlock;
  const auto admittedFrom = [&](uint32_t chunk) {
    while (chunk < documents.chunks && !isAdmitted(admitted, chunk)) chunk += warps;
    return chunk;
  };
  uint32_t chunk = admittedFrom(blockIdx.x * warpsPerBlock + threadIdx.x / 32);
  if (chunk >= documents.chunks) return;
  WarpProgram<DeviceWarp, Bits, Steps, AtOnce> program(documents, queries);
  program.begin(chunk);
  while (chunk < documents.chunks) {
    const uint32_t following = admittedFrom(chunk + warps);
    program.score(chunk, following < documents.chunks ? following : chunk, scores);
    chunk = following;
  }
}

using ScoreKernel = void (*)(Documents, Queries, const uint32_t*, float*);

/// The kernels score rows of these many dimensions. Other rows are padded with zeros.
inline constexpr uint32_t kernelDims[] = {64, 128, 256, 384, 512, 768, 1024};

inline uint32_t paddedDim(RowShape rows) {
  return *std::lower_bound(std::begin(kernelDims), std::end(kernelDims), std::max(rows.dim, stepDims(rows.bits)));
}

template <uint32_t Bits, uint32_t AtOnce>
ScoreKernel kernelOf(uint32_t dim) {
  constexpr uint32_t step = stepDims(Bits);
  switch (dim) {
    case 64: return scoreChunks<Bits, (64 + step - 1) / step, AtOnce>;
    case 128: return scoreChunks<Bits, 128 / step, AtOnce>;
    case 256: return scoreChunks<Bits, 256 / step, AtOnce>;
    case 384: return scoreChunks<Bits, 384 / step, AtOnce>;
    case 512: return scoreChunks<Bits, 512 / step, AtOnce>;
    case 768: return scoreChunks<Bits, 768 / step, AtOnce>;
    default: return scoreChunks<Bits, 1024 / step, AtOnce>;
  }
}

/// `blocks`: of all queries of the call.
inline ScoreKernel kernelFor(RowShape rows, uint32_t blocks) {
  const uint32_t dim = paddedDim(rows);
  const bool one = blocks == 1;
  switch (rows.bits) {
    case 1: return one ? kernelOf<1, 1>(dim) : kernelOf<1, 4>(dim);
    case 2: return one ? kernelOf<2, 1>(dim) : kernelOf<2, 4>(dim);
    case 4: return one ? kernelOf<4, 1>(dim) : kernelOf<4, 4>(dim);
    default: return one ? kernelOf<8, 1>(dim) : kernelOf<8, 4>(dim);
  }
}

/// The scores of one query. Those of chunks that are not admitted are never read.
struct Scored {
  const float* scores;
  const uint32_t* admitted;
  uint32_t chunks;
};

/// Adds to `counts` [queries x digits]. In all kernels below, `blockIdx.y` is the query, and `scored` begins with the
/// first query's scores.
__global__ void countDigits(Scored scored, const Selection* selections, uint32_t pass, uint32_t* counts) {
  __shared__ uint32_t own[digits];
  for (uint32_t digit = threadIdx.x; digit < digits; digit += blockDim.x) own[digit] = 0;
  __syncthreads();
  const Selection selection = selections[blockIdx.y];
  const float* const scores = scored.scores + uint64_t(blockIdx.y) * scored.chunks;
  for (uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x; chunk < scored.chunks; chunk += gridDim.x * blockDim.x) {
    if (!isAdmitted(scored.admitted, chunk)) continue;
    const uint32_t key = keyOf(scores[chunk]);
    if (begins(key, selection, pass)) atomicAdd(&own[digitOf(key, pass)], 1);
  }
  __syncthreads();
  for (uint32_t digit = threadIdx.x; digit < digits; digit += blockDim.x) {
    if (own[digit] > 0) atomicAdd(&counts[blockIdx.y * digits + digit], own[digit]);
  }
}

/// One block of `choosers` threads a query. Leaves `counts` zeroed for the next pass.
__global__ void __launch_bounds__(choosers) chooseDigit(Selection* selections, uint32_t* counts, uint32_t pass) {
  constexpr uint32_t each = digits / choosers;
  __shared__ uint32_t own[digits];
  __shared__ uint32_t above[choosers];
  uint32_t* const ofQuery = counts + blockIdx.y * digits;
  // Read before the barriers, because one thread writes it after them.
  Selection selection = selections[blockIdx.y];
  for (uint32_t digit = threadIdx.x; digit < digits; digit += choosers) {
    own[digit] = ofQuery[digit];
    ofQuery[digit] = 0;
  }
  __syncthreads();
  // The first thread has the highest digits.
  const uint32_t end = digits - threadIdx.x * each;
  uint32_t mine = 0;
  for (uint32_t digit = end - each; digit < end; ++digit) mine += own[digit];
  uint32_t upToMine = mine;
  for (uint32_t distance = 1; distance < choosers; distance *= 2) {
    above[threadIdx.x] = upToMine;
    __syncthreads();
    if (threadIdx.x >= distance) upToMine += above[threadIdx.x - distance];
    __syncthreads();
  }
  const uint32_t before = upToMine - mine;
  if (before >= selection.wanted || upToMine < selection.wanted) return;
  selection.wanted -= before;
  choose(selection, own, pass, end);
  selections[blockIdx.y] = selection;
}

/// Collects every chunk whose score is at least the k-th best: k chunks and those that tie with the k-th, in any order.
/// A value of `found` [queries x room] is the key in the high half and the chunk in the low half. `places` [queries]
/// starts at zero and counts all of them, also those that find no room.
__global__ void gather(Scored scored, const Selection* selections, uint32_t room, uint64_t* found, uint32_t* places) {
  const uint32_t least = selections[blockIdx.y].prefix;
  const float* const scores = scored.scores + uint64_t(blockIdx.y) * scored.chunks;
  for (uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x; chunk < scored.chunks; chunk += gridDim.x * blockDim.x) {
    if (!isAdmitted(scored.admitted, chunk)) continue;
    const uint32_t key = keyOf(scores[chunk]);
    if (key < least) continue;
    const uint32_t place = atomicAdd(&places[blockIdx.y], 1);
    if (place < room) found[uint64_t(blockIdx.y) * room + place] = uint64_t(key) << 32 | chunk;
  }
}

}  // namespace maxsimd::cuda
