// The kernels: scores of all chunks, and the best k of them.
#pragma once

#include "device_warp.cuh"
#include "selection.h"
#include "warp_program.h"

namespace maxsimd::cuda {

inline constexpr uint32_t warpsPerBlock = 8;
inline constexpr uint32_t threadsPerBlock = 32 * warpsPerBlock;

/// A warp takes one chunk after the other, so that neighbouring warps read neighbouring chunks. `admitted`: a bit a chunk, or null;
/// scores of the others are -infinity.
template <uint32_t Steps, uint32_t AtOnce>
__global__ void __launch_bounds__(threadsPerBlock)
    scoreChunks(Documents documents, Queries queries, const uint32_t* __restrict__ admitted, float* __restrict__ scores) {
  WarpProgram<DeviceWarp, Steps, AtOnce> program(documents, queries);
  const uint32_t warps = gridDim.x * warpsPerBlock;
  for (uint32_t chunk = blockIdx.x * warpsPerBlock + threadIdx.x / 32; chunk < documents.chunks; chunk += warps) {
    if (admitted == nullptr || (admitted[chunk / 32] >> (chunk % 32) & 1) != 0) {
      program.score(chunk, scores);
      continue;
    }
    for (uint32_t query = DeviceWarp::lane(); query < queries.queries; query += 32) {
      scores[uint64_t(query) * documents.chunks + chunk] = -__int_as_float(0x7f800000);
    }
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

/// One thread a query; leaves `counts` zeroed for the next pass.
__global__ void chooseDigit(Selection* selections, uint32_t* counts, uint32_t pass) {
  choose(selections[blockIdx.y], counts + blockIdx.y * digits, pass);
  for (uint32_t digit = 0; digit < digits; ++digit) counts[blockIdx.y * digits + digit] = 0;
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
