#!/bin/sh
# Everything that says how fast the kernels are, on a machine with a GPU:  research/cuda/measure.sh OUTPUT_DIRECTORY
# Each row is a JSON file, written at once and not measured again; with torch, peers.py beside them. About two minutes.
set -eu
out=${1:?usage: research/cuda/measure.sh OUTPUT_DIRECTORY}
here=$(cd "$(dirname "$0")" && pwd)
program=${PROGRAM:-$here/../../build/cuda/maxsim}
mkdir -p "$out"

row() {
  name=$1
  shift
  [ -s "$out/$name.json" ] && return
  echo "== $name: maxsim $*"
  timeout 120 "$program" "$@" >"$out/$name.part"
  mv "$out/$name.part" "$out/$name.json"
  cat "$out/$name.json"
}

row 100k --chunks 100000 --rounds 200
row 1m --chunks 1000000
row 1m-short --chunks 3200000 --rows 20
row 1m-long --chunks 320000 --rows 200
row 1m-query-of-128 --chunks 1000000 --tokens 128
row 1m-4-queries --chunks 1000000 --queries 4
row 1m-16-queries --chunks 1000000 --queries 16
row 1m-filter-100 --chunks 1000000 --admit 100
row 1m-filter-10000 --chunks 1000000 --admit 10000
# 83 GB: of an H200, not of an H100.
row 10m --chunks 10000000 --rounds 20 || echo "10m: not on this device"
row 8m --chunks 8000000 --rounds 20 || echo "8m: not on this device"
if python3 -c 'import torch' 2>/dev/null && [ ! -s "$out/peers.json" ]; then
  python3 "$here/peers.py" >"$out/peers.part"
  mv "$out/peers.part" "$out/peers.json"
  cat "$out/peers.json"
fi
