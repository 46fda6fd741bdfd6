#!/bin/sh
# Trains and measures the rows of the model card's training table, on two cores and without a GPU:
#   models/train.sh DATASETS OUT [ROW...]
# DATASETS holds `training/`, `scifact/` and `cranfield/`; OUT keeps states, rows and learned numbers (9 GB). Needs Python 3.11 or newer,
# a package index for pip and 16 GB of disk. `training/train.py` says what a row is.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv="$here/training/.venv"
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
pip="$venv/bin/python -m pip --disable-pip-version-check --quiet"
$pip install --requirement "$here/training/requirements.txt"
$pip install --no-deps --require-hashes --requirement "$here/source-package.txt"
$pip download --no-deps --only-binary :all: --require-hashes --requirement "$here/fit-packages.txt" --dest "$here/.cache/wheels"
# A row runs on one thread, so that two can run beside one another; threads that spin would take the other's core.
export PYTHONPATH="$here" OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
exec "$venv/bin/python" "$here/training/train.py" "$@"
