#!/usr/bin/env bash
# Validates the OpenAPI document, generates clients from it with the commands of docs/guides/other-languages.md, checks
# their types and runs them on the server. Everything is generated into a temporary directory.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD guide=$PWD/../../docs/guides/other-languages.md document=$PWD/../../httpapi/openapi.json
dir=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

export PATH="$here/python/.venv/bin:$PATH"
openapi-spec-validator "$document"
node typescript/lint.mjs "$document"

# The server exits when its standard input closes, also if this script is killed.
mkfifo "$dir/stdin" "$dir/address"
./.server <"$dir/stdin" >"$dir/address" &
server=$!
exec 3>"$dir/stdin"
read -r API <"$dir/address"
export API TOKEN=valid

cd "$dir"
ln -s "$here/typescript/node_modules" node_modules
cp "$here"/typescript/{package.json,tsconfig.json,client.test.ts} "$here"/python/{client_test.py,mypy.ini} .
commands=$(sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$guide")
[ -n "$commands" ] || { echo "$guide has no commands" >&2; exit 1; }
bash -euxc "$commands" 3>&-
cmp openapi.json "$document" # the API serves this document

npx tsc -p .
node --test out/client.test.js 3>&-
mypy --cache-dir mypy client_test.py perdure_client
python -B -m unittest client_test.py
