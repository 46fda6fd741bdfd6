#!/bin/sh
# Exports a PyLate checkpoint (a ColBERT of the BERT or the ModernBERT family) as a directory for `maxsimd models add`:
#   models/convert.sh CHECKPOINT DIRECTORY
# CHECKPOINT is a directory as PyLate saves it, or a name on the Hugging Face hub. Needs Python 3.11 or newer, a package index for
# pip and 8 GB of disk (PyTorch), and no GPU.
set -eu
here=$(dirname "$0")
venv="$here/pylate/.venv"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip --disable-pip-version-check --quiet install --requirement "$here/pylate/requirements.txt"
exec "$venv/bin/python" "$here/pylate/convert.py" "$@"
