#!/bin/sh
# Makes checkpoints of PyLate, with random and with trained weights, and exports them: `models/pylate/prove.sh OUT`. See `test/end-to-end/pylate.test.ts`.
set -eu
here=$(dirname "$0")
out=$1
python=$("$here/../tool-python.sh" pylate)
"$python" -m pip --disable-pip-version-check --quiet install --no-deps --requirement "$here/../source-package.txt"
"$python" "$here/checkpoints.py" "$out"
for family in bert modernbert trained; do
  "$here/../convert.sh" "$out/$family/checkpoint" "$out/$family/export"
done
