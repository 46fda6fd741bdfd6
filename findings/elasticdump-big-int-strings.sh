#!/bin/sh
# elasticdump 6.125.1: --support-big-int, which keeps integers above 2^53, also turns strings of such digits into numbers.
#
# The input has one document with three fields: a card number as a string, a short string of digits, and an integer beyond 2^53. It is
# copied from file to file. The option is meant for the integer, which stays a number with all its digits. But the card number
# loses its quotation marks, too, so an index that maps the field as a keyword gets a number, and a reader with doubles rounds it.
# The short string stays a string. The option --big-int-fields names the fields that may change.
#
# Needs npm and Node 20 or later. Exits with 0 while elasticdump behaves so, and with 1 once it does not.
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
