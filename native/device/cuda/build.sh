#!/bin/sh
# Builds .cuda/maxsimd-cuda.so, which MAXSIMD_ENGINE_DEVICE=cuda:N loads. The build needs no GPU. A machine with a GPU needs only
# its driver. The file has code for Ampere and Hopper; the driver of a later GPU compiles it when it is loaded.
set -eu
cd "$(dirname "$0")/../../.."
mkdir -p .cuda
nvcc=$(native/device/cuda/nvcc.sh)
# No fused multiply-add: the definition of the score has two roundings.
"$nvcc" -std=c++20 -O3 --fmad=false -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
  -gencode arch=compute_90,code=compute_90 -cudart static -L"$(dirname "$nvcc")/../lib" -Inative -shared \
  -Xcompiler -fPIC,-fvisibility=hidden -o .cuda/maxsimd-cuda.so native/device/cuda/library.cu
