#!/bin/sh
# A file under /run/secrets that has the name of a variable gives it its value: a password in it is in no `docker inspect`.
set -eu
# A core file would hold texts.
ulimit -c 0
for file in /run/secrets/MAXSIMD_*_URL; do
  if [ -e "$file" ]; then
    value=$(cat "$file")
    export "${file##*/}=$value"
  fi
done
home=/opt/maxsimd/node_modules/maxsimd
if [ "${1:-}" = encoder ]; then
  shift
  exec node "$home/src/encoder/server/main.js" "$@"
fi
exec node "$home/bin/maxsimd.mjs" "$@"
