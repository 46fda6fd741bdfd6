#!/bin/sh
# Builds .cuda/maxsimd-cuda.so, what MAXSIMD_ENGINE_DEVICE=cuda:N loads. Needs no GPU, and on the machine with one a driver alone.
# For Ampere and Hopper; later ones compile it when it is loaded.
set -eu
cd "$(dirname "$0")/../../.."
mkdir -p .cuda
nvcc=$(native/device/cuda/nvcc.sh)
# Without fused products: the definition has two roundings.
"$nvcc" -std=c++20 -O3 --fmad=false -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
  -gencode arch=compute_90,code=compute_90 -cudart static -L"$(dirname "$nvcc")/../lib" -Inative -shared \
  -Xcompiler -fPIC,-fvisibility=hidden -o .cuda/maxsimd-cuda.so native/device/cuda/library.cu
