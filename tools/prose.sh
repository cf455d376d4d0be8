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

# The errors of these files are printed, and do not fail yet.
spared=()
while read -r path; do spared+=("$path"); done < <(grep -v '^#' tools/vale/spared.txt)

exclude=()
for path in "${spared[@]}"; do exclude+=(":!$path"); done
if [ ${#spared[@]} -gt 0 ]; then
  git ls-files -z -- "${spared[@]}" ':!*.gen.go' | { grep -zE '(\.md|\.go|/openapi\.yaml)$' || true; } | xargs -0r .bin/vale --config tools/vale/vale.ini --output line "${level[@]}" --no-exit
fi
git ls-files -z -- "${texts[@]}" "${exclude[@]}" | xargs -0 .bin/vale --config tools/vale/vale.ini --output line "${level[@]}"
