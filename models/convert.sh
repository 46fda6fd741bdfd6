#!/bin/sh
# Exports a late-interaction checkpoint (of the BERT, ModernBERT or XLM-RoBERTa family) as a directory for `maxsimd models add`:
#   models/convert.sh CHECKPOINT DIRECTORY
# CHECKPOINT is a directory as PyLate or sentence-transformers 6 (`MultiVectorEncoder`) saves it, or the name of a PyLate model on
# the Hugging Face hub. Needs Python 3.11 or newer, a package index for pip and 8 GB of disk (PyTorch), and no GPU.
set -eu
here=$(dirname "$0")
tool=pylate
if grep -q '"MultiVectorEncoder"' "${1-}/config_sentence_transformers.json" 2>/dev/null; then tool=multi-vector; fi
python=$("$here/tool-python.sh" "$tool")
exec "$python" "$here/$tool/convert.py" "$@"
