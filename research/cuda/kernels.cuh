// The kernels: scores of all chunks, and the best k of them.
#pragma once

#include "device_warp.cuh"
#include "selection.h"
#include "warp_program.h"

namespace maxsimd::cuda {

inline constexpr uint32_t warpsPerBlock = 8;
inline constexpr uint32_t threadsPerBlock = 32 * warpsPerBlock;
inline constexpr uint32_t choosers = 256;

/// A warp takes one chunk after the other, so that neighbouring warps read neighbouring chunks. `admitted`: a bit a chunk, or null;
/// scores of the others are -infinity.
template <uint32_t Steps, uint32_t AtOnce>
__global__ void __launch_bounds__(threadsPerBlock)
    scoreChunks(Documents documents, Queries queries, const uint32_t* __restrict__ admitted, float* __restrict__ scores) {
  const uint32_t warps = gridDim.x * warpsPerBlock;
  const auto admittedFrom = [&](uint32_t chunk) {
    for (; chunk < documents.chunks; chunk += warps) {
      if (admitted == nullptr || (admitted[chunk / 32] >> (chunk % 32) & 1) != 0) break;
      for (uint32_t query = DeviceWarp::lane(); query < queries.queries; query += 32) {
        scores[uint64_t(query) * documents.chunks + chunk] = -__int_as_float(0x7f800000);
      }
    }
    return chunk;
  };
  uint32_t chunk = admittedFrom(blockIdx.x * warpsPerBlock + threadIdx.x / 32);
  if (chunk >= documents.chunks) return;
  WarpProgram<DeviceWarp, Steps, AtOnce> program(documents, queries);
  program.begin(chunk);
  while (chunk < documents.chunks) {
    const uint32_t following = admittedFrom(chunk + warps);
    program.score(chunk, following < documents.chunks ? following : chunk, scores);
    chunk = following;
  }
}

/// Adds to `counts` [queries x digits]; `blockIdx.y` is the query, as in all kernels below.
__global__ void countDigits(const float* __restrict__ scores, uint32_t chunks, const Selection* selections, uint32_t pass,
                            uint32_t* counts) {
  __shared__ uint32_t own[digits];
  for (uint32_t digit = threadIdx.x; digit < digits; digit += blockDim.x) own[digit] = 0;
  __syncthreads();
  const Selection selection = selections[blockIdx.y];
  for (uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x; chunk < chunks; chunk += gridDim.x * blockDim.x) {
    const uint64_t key = keyOf(scores[uint64_t(blockIdx.y) * chunks + chunk], chunk);
    if (begins(key, selection, pass)) atomicAdd(&own[digitOf(key, pass)], 1);
  }
  __syncthreads();
  for (uint32_t digit = threadIdx.x; digit < digits; digit += blockDim.x) {
    if (own[digit] > 0) atomicAdd(&counts[blockIdx.y * digits + digit], own[digit]);
  }
}

/// A block of `choosers` threads a query; leaves `counts` zeroed for the next pass.
__global__ void __launch_bounds__(choosers) chooseDigit(Selection* selections, uint32_t* counts, uint32_t pass) {
  constexpr uint32_t each = digits / choosers;
  __shared__ uint32_t own[digits];
  __shared__ uint32_t above[choosers];
  uint32_t* const ofQuery = counts + blockIdx.y * digits;
  // Read before the barriers, behind which one thread writes it.
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

/// The keys of the best k, in any order: `found` [queries x k], `places` [queries] begins with zeros.
__global__ void gather(const float* __restrict__ scores, uint32_t chunks, const Selection* selections, uint32_t k,
                       uint64_t* found, uint32_t* places) {
  const uint64_t least = selections[blockIdx.y].prefix;
  for (uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x; chunk < chunks; chunk += gridDim.x * blockDim.x) {
    const uint64_t key = keyOf(scores[uint64_t(blockIdx.y) * chunks + chunk], chunk);
    if (key >= least) found[blockIdx.y * k + atomicAdd(&places[blockIdx.y], 1)] = key;
  }
}

}  // namespace maxsimd::cuda
