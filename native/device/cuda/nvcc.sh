#!/bin/sh
# Prints the path of nvcc. If the machine has none, it installs one from PyPI (370 MB). Needs no GPU.
set -eu
cd "$(dirname "$0")/../../.."
command -v nvcc && exit
home=$PWD/.cuda/nvcc
if ! ls "$home"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc 2>/dev/null; then
  python3 -m venv "$home"
  "$home/bin/python3" -m pip install --quiet nvidia-cuda-nvcc==13.* nvidia-cuda-runtime==13.* nvidia-cuda-cccl==13.* nvidia-nvvm==13.* nvidia-cuda-crt==13.* >&2
  ls "$home"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc
fi
