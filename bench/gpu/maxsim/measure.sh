#!/bin/sh
# Measures how fast the kernels are, on a machine with a GPU:  bench/gpu/maxsim/measure.sh OUTPUT_DIRECTORY [JSON]
# Each row is a JSON file. A row whose file is there is not measured again. With torch, peers.py adds rows. In the end all rows are joined in
# OUTPUT_DIRECTORY.json, or in the file JSON. This takes 75 s. DEVICE=cpu tries the script without a GPU, with the rows of torch alone.
set -eu
out=${1:?usage: bench/gpu/maxsim/measure.sh OUTPUT_DIRECTORY [JSON]}
json=${2:-$out.json}
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../../build/cuda
mkdir -p "$out"

# row NAME COMMAND...: the command prints the row's JSON. A command that fails leaves no row, and its name is printed.
row() {
  name=$1
  shift
  [ -s "$out/$name.json" ] && return
  echo "== $name: $*"
  if timeout 150 "$@" >"$out/$name.part"; then
    mv "$out/$name.part" "$out/$name.json"
    cat "$out/$name.json"
  else
    echo "$name: failed"
    case $name in 10m | 20m-* | peer-*) ;; *) failed=$name ;; esac
  fi
}

failed=
if [ "${DEVICE:-0}" != cpu ]; then
  # Rows of the default model.
  row 1m-2bits "$build/maxsim" --dim 384 --bits 2 --chunks 1000000 --compare 1000000
  row 1m-2bits-4-queries "$build/maxsim" --dim 384 --bits 2 --chunks 1000000 --queries 4
  row 1m "$build/maxsim" --chunks 1000000 --compare 1000000
  row 100k "$build/maxsim" --chunks 100000 --rounds 200
  row 1m-short "$build/maxsim" --chunks 3200000 --rows 20
  row 1m-long "$build/maxsim" --chunks 320000 --rows 200
  row 1m-query-of-128 "$build/maxsim" --chunks 1000000 --tokens 128
  row 1m-4-queries "$build/maxsim" --chunks 1000000 --queries 4
  row 1m-16-queries "$build/maxsim" --chunks 1000000 --queries 16
  row 1m-filter-100 "$build/maxsim" --chunks 1000000 --admit 100
  row 1m-filter-10000 "$build/maxsim" --chunks 1000000 --admit 10000
  # 125 GB: of an H200, not of an H100.
  row 20m-2bits "$build/maxsim" --dim 384 --bits 2 --chunks 20000000 --rounds 10
  # 83 GB: of an H200, not of an H100.
  row 10m "$build/maxsim" --chunks 10000000 --rounds 20
  row 8m "$build/maxsim" --chunks 8000000 --rounds 20
fi
if python3 -c 'import torch, triton' 2>/dev/null; then
  if [ "${DEVICE:-0}" = cpu ]; then
    row peer-eager python3 "$here/peers.py" eager --device cpu --chunks 2000 --block 1000 --rounds 2
  else
    for kind in triton eager compiled; do row peer-$kind python3 "$here/peers.py" $kind; done
  fi
fi

{
  printf '{'
  comma=
  for file in "$out"/*.json; do
    # Without a GPU and without torch there is no row.
    [ -e "$file" ] || continue
    printf '%s"%s":' "$comma" "$(basename "$file" .json)"
    cat "$file"
    comma=,
  done
  printf '}\n'
} >"$json"
[ -z "$failed" ]
