#!/usr/bin/env bash
# Checks the texts of the project with Vale and the style in tools/vale: Markdown, comments, the API description and
# help texts. It prints errors, and fails if there are any; with "warnings" it prints warnings as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

vale() { .bin/vale --config tools/vale/vale.ini --output line "${level[@]}" "$@"; }
level=(--minAlertLevel error)

# A style that finds nothing passes everything: each kind of file has to be able to fail.
bad() {
  if printf '%b' "$2" | vale --ext "$1" >/dev/null; then
    echo "tools/prose.sh: the style does not find an error in $1" >&2
    exit 1
  fi
}
bad .md 'The books are exact.\n'
bad .go 'package p\n\n// F returns the books.\nfunc F() {}\n'

[ "${1-}" != warnings ] || level=(--minAlertLevel warning)
texts=('*.md' '*.go' ':!*.gen.go' internal/httpapi/openapi.yaml)

git ls-files -z -- "${texts[@]}" | xargs -0 .bin/vale --config tools/vale/vale.ini --output line "${level[@]}"
