#!/bin/sh
# Exports a late-interaction checkpoint (of the BERT, ModernBERT or XLM-RoBERTa family) as a directory for `maxsimd models add`:
#   models/convert.sh CHECKPOINT DIRECTORY
# CHECKPOINT is a directory as PyLate or sentence-transformers 6 (`MultiVectorEncoder`) saves it, or the name of a PyLate model on
# the Hugging Face hub. Needs Python 3.11 or newer, a package index for pip and 8 GB of disk (PyTorch), and no GPU.
set -eu
here=$(dirname "$0")
tool="$here/pylate"
if grep -q '"MultiVectorEncoder"' "${1-}/config_sentence_transformers.json" 2>/dev/null; then tool="$here/multi-vector"; fi
venv="$tool/.venv"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip --disable-pip-version-check --quiet install --requirement "$tool/requirements.txt"
exec "$venv/bin/python" "$tool/convert.py" "$@"
