#!/bin/sh
# Builds build/cuda/emulation (for the CPU) and build/cuda/maxsim (for a device, with everything it needs in one file), with the nvcc of
# this machine or, where there is none, one from PyPI:  research/cuda/build.sh [ARCHITECTURES, default "80 90"]
# Needs no GPU. What each kernel takes of a multiprocessor is printed.
set -eu
cd "$(dirname "$0")/../.."
architectures=${1:-80 90}
cmake -S research/cuda -B build/cuda >/dev/null
cmake --build build/cuda

if ! nvcc=$(command -v nvcc); then
  home=build/cuda/wheels
  [ -d $home ] || python3 -m venv $home
  $home/bin/pip install --quiet nvidia-cuda-nvcc==13.* nvidia-cuda-runtime==13.* nvidia-cuda-cccl==13.* nvidia-nvvm==13.* nvidia-cuda-crt==13.*
  nvcc=$(echo $home/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
fi
codes=
for architecture in $architectures; do
  codes="$codes -gencode arch=compute_$architecture,code=sm_$architecture"
done
# Without fused products: the definition has two roundings.
# shellcheck disable=SC2086 # one word an option
"$nvcc" -std=c++20 -O3 --fmad=false $codes -Xptxas -v -cudart static -L"$(dirname "$nvcc")/../lib" -Inative -Iresearch/cuda \
  -o build/cuda/maxsim research/cuda/main.cu build/cuda/libkernels.a 2>build/cuda/nvcc.log || { cat build/cuda/nvcc.log; exit 1; }
grep -A3 'Compiling entry function.*scoreChunks' build/cuda/nvcc.log | grep -E 'Compiling|spill|registers'
