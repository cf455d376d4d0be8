#!/usr/bin/env bash
# Generates a client in TypeScript and one in Go from the description of the API, checks their types, and runs the life of an order
# with each against an instance of the program given as $1. A description from which no client can be generated fails here.
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"

npx --no-install openapi-typescript ../../internal/httpapi/openapi.yaml -o api.gen.ts >/dev/null
npx --no-install tsc
in_go=$(mktemp -d) # in the folder of this file, it would be a part of the module of the tools, which lacks its imports
trap 'rm -rf "$in_go"' EXIT
cp life.go "$in_go"
go tool -modfile=../go.mod oapi-codegen -config oapi-codegen.yaml -o "$in_go/client.gen.go" ../../internal/httpapi/openapi.yaml

# run COMMAND...: call it with the URL of a new instance.
run() (
	dir=$(mktemp -d)
	"$program" serve --listen 127.0.0.1:0 --database "sqlite:$dir/shop.db" >"$dir/stdout" 2>"$dir/stderr" &
	instance=$!
	trap 'kill "$instance" 2>/dev/null; wait "$instance" || true; rm -rf "$dir"' EXIT
	for ((tries = 0; tries < 600; tries++)); do
		url=$(grep -oE 'http://[^ ]+' "$dir/stdout" | head -n 1) && break
		kill -0 "$instance" 2>/dev/null || break
		sleep 0.1
	done
	[[ ${url:-} ]] || { echo "the instance does not listen:" >&2; cat "$dir/stderr" >&2; exit 1; }
	"$@" "$url"
)
run node .out/life.js
run go -C ../.. run "$in_go/life.go" "$in_go/client.gen.go"
