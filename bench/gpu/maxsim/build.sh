#!/bin/sh
# Builds build/cuda/maxsim, the measurement, in one file with everything it needs:  bench/gpu/maxsim/build.sh [ARCHITECTURES, default "80 90"]
# Needs no GPU. What each kernel takes of a multiprocessor is printed.
set -eu
cd "$(dirname "$0")/../../.."
architectures=${1:-80 90}
cmake -S bench/gpu/maxsim -B build/cuda >/dev/null
cmake --build build/cuda
nvcc=$(native/device/cuda/nvcc.sh)
codes=
for architecture in $architectures; do
  codes="$codes -gencode arch=compute_$architecture,code=sm_$architecture"
done
# Without fused products: the definition has two roundings.
# shellcheck disable=SC2086 # one word an option
"$nvcc" -std=c++20 -O3 --fmad=false $codes -Xptxas -v -cudart static -L"$(dirname "$nvcc")/../lib" -Inative \
  -o build/cuda/maxsim bench/gpu/maxsim/main.cu build/cuda/libkernels.a 2>build/cuda/nvcc.log || { cat build/cuda/nvcc.log; exit 1; }
grep -A3 'Compiling entry function.*scoreChunks' build/cuda/nvcc.log | grep -E 'Compiling|spill|registers'
