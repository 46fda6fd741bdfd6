#!/bin/sh
# Prints the path of a Python with the packages that TOOL (a folder of this one, with requirements.txt) pins. It installs them first.
#   models/tool-python.sh TOOL
set -eu
tool="$(cd "$(dirname "$0")" && pwd)/$1"
python="$tool/.venv/bin/python"
[ -x "$python" ] || python3 -m venv "$tool/.venv"
"$python" -m pip --disable-pip-version-check --quiet install --requirement "$tool/requirements.txt" >&2
echo "$python"
