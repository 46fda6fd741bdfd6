#!/bin/sh
# Everything that says how fast a GPU host is, from a clean checkout:  bench/gpu/all.sh OUTPUT_DIRECTORY [BEIR_DIRECTORY]
# Installs the CUDA provider, checks that it is what runs, measures the bare device, the encoder beside its peers, what the
# host does around a model, and the whole service, and leaves JSON, HTML and logs in the output directory.
# DEVICE chooses the GPU (default 0), PROCESSES how many encoders share it in turn (default "1 2"); DEVICE=cpu tries the
# script itself on a host without one.
set -eu
out=${1:?usage: bench/gpu/all.sh OUTPUT_DIRECTORY [BEIR_DIRECTORY]}
mkdir -p "$out"
out=$(cd "$out" && pwd)
beir=${2:+--beir $(cd "$2" && pwd)}
cd "$(dirname "$0")/../.."
device=${DEVICE:-0}
if [ "$device" = cpu ]; then
  name=cpu provider=cpu batches=272,1088 devices=
else
  name=cuda:$device provider=cuda batches=1024,2048,4096,8192,16384,32768,65536 devices=$device
  npm run --silent cuda:install
fi

step() {
  log=$1
  shift
  echo "== $log: npm run bench -- $*"
  npm run --silent bench -- "$@" >"$out/$log.txt" 2>"$out/$log.log" || { tail -n 20 "$out/$log.log"; exit 1; }
  cat "$out/$log.txt"
}

# shellcheck disable=SC2086 # the option and its value are two words
step device gpu --device "$name" --batch-tokens "$batches" $beir --json "$out/device.json"
# shellcheck disable=SC2086
step encoder encoder --device "$name" --texts "${TEXTS:-2000}" --rounds 5 $beir --no-peers --json "$out/encoder.json"
# shellcheck disable=SC2086
step host host $beir --json "$out/host.json"
export MAXSIMD_PROVIDER=$provider MAXSIMD_DEVICES=$devices
MAXSIMD_BATCH_TOKENS=$(node -p 'JSON.parse(fs.readFileSync(process.argv[1])).best_batch_tokens' "$out/device.json")
export MAXSIMD_BATCH_TOKENS
# One process alternates between the device and copying; several on the same device overlap.
for processes in ${PROCESSES:-1 2}; do
  export MAXSIMD_ENCODER_PROCESSES=$processes
  # shellcheck disable=SC2086
  step "capacity-$processes" capacity --mix search=3,upsert=1 --step-seconds "${STEP_SECONDS:-15}" $beir \
    --json "$out/capacity-$processes.json" --html "$out/capacity-$processes.html"
done
