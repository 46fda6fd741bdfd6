#!/usr/bin/env bash
# Imports a file by the command line, which continues where it stopped when it is run again, and searches it:
# `examples/import.sh`. Where the packages are installed, `npx maxsimd` takes the place of `npm run maxsimd --`.
set -euo pipefail
cd "$(dirname "$0")/.."

npm run --silent maxsimd -- import examples/handbook.jsonl --index handbook
npm run --silent maxsimd -- search --index handbook "what if my computer is stolen?"
