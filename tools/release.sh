#!/usr/bin/env bash
# Builds a release twice from a clone of the last commit, and publishes nothing. The archives of both have equal hashes, the list of each
# program names every module that is linked into it, and the program of this machine's archive runs the demo without Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git clone -q . "$dir/clone"
cd "$dir/clone"
git remote set-url origin https://github.com/acme/shop
CGO_ENABLED=0 GOBIN=$dir go install -C tools/release tool
"$dir/goreleaser" check
for round in 1 2; do
  "$dir/goreleaser" release --snapshot --clean
  sha256sum dist/*.tar.gz >"$dir/$round"
done
cmp "$dir/1" "$dir/2" || { echo "release: two builds differ" >&2; exit 1; }

archive=$(echo dist/*_"$(go env GOOS)"_"$(go env GOARCH)".tar.gz)
mkdir "$dir/release"
tar -C "$dir/release" -xzf "$archive"
go version -m "$dir/release/shop" | awk '$1 == "dep" { print $2 "@" $3 }' | while read -r module; do
  grep -qF "\"pkg:golang/$module?" "${archive%.tar.gz}.cdx.json" || { echo "release: the list lacks $module" >&2; exit 1; }
done
ls "$dir"/release/man/shop-serve.1 "$dir"/release/completions/shop.bash
cd "$dir/release"
env -i PATH=/nowhere TMPDIR="$dir" "$PWD/shop" demo
