#!/bin/sh
# With --support-big-int, elasticdump turns strings of digits into numbers, not only the integers that the option is for.
#
# elasticdump 6.125.1 copies one document from file to file. Its card number is a string of digits beyond 2^53, and its count is an
# integer beyond 2^53. The count keeps its digits, as the option promises. The card number loses its quotation marks, so an
# index that maps the field as a keyword gets a number, and a reader with doubles rounds it. A short string of digits stays a
# string. The option --big-int-fields names the fields that may change.
#
# It needs npm and Node 20 or later. It exits with 0 while elasticdump behaves so, and with 1 once it does not.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund elasticdump@6.125.1
cat >in.jsonl <<'LINE'
{"_index":"cards","_id":"1","_source":{"card":"90071992547409931234","pin":"12","count":90071992547409931234}}
LINE
node node_modules/elasticdump/bin/elasticdump --input=in.jsonl --output=out.jsonl --type=data --support-big-int >/dev/null
wanted='{"_index":"cards","_id":"1","_source":{"card":90071992547409931234,"pin":"12","count":90071992547409931234}}'
found=$(cat out.jsonl)
echo "elasticdump $(node -p 'require("elasticdump/package.json").version'), --support-big-int"
echo "in:  $(cat in.jsonl)"
echo "out: $found"
[ "$found" = "$wanted" ] || { echo 'It behaves otherwise now.'; exit 1; }
