#!/bin/sh
# What a machine with a GPU but without Node, npm or a network needs for bench/gpu/all.sh and research/cuda/measure.sh, in parts of
# 60 MiB:  bench/gpu/pack.sh OUTPUT_DIRECTORY   (after npm start or npm test, cuda:install and research/cuda/build.sh, as far as they are wanted)
# There:  cat PARTS | tar -xzf -   and go on in that directory.
set -eu
out=${1:?usage: bench/gpu/pack.sh OUTPUT_DIRECTORY}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
{
  git ls-files
  find node_modules build .cuda models -type f,l 2>/dev/null || true
} | grep -vE '^node_modules/(@typescript|@oxlint|@oxlint-tsgolint|@oxfmt|oxfmt|oxlint|@rolldown|@vitest|vitest|vite|playwright-core|lightningcss|axe-core)[-/]' |
  grep -vE '^node_modules/onnxruntime-node/bin/[^/]*/(darwin|win32|linux/arm64)/' |
  grep -vE '^build/(clients|cuda/wheels)/' | sort -u |
  tar -czf - --no-recursion -T - | split -b 60m -d - "$out/maxsimd-gpu.tar.gz."
ls -l "$out" | awk 'NR > 1 { print $9, int($5 / 1048576 + 0.5) " MiB" }'
