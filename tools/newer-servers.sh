#!/usr/bin/env bash
# Unpacks a server that is newer than that of this Debian into .bin/servers/NAME, with the libraries that it needs, and
# installs nothing. The archive is the one that apt has, and apt checks its signatures.
#
#   tools/newer-servers.sh NAME...
#
# A program in .bin/servers/NAME has the name under which the tests look for it, so that a test uses it with that folder first in PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# describe NAME: set the suite of Debian, the package, and the programs as PATH=NAME IN PATH.
describe() {
	case $1 in
		redis-8) suite=trixie package=redis-server programs=(usr/bin/redis-server=redis-server) ;;
		valkey-9) suite=sid package=valkey-server programs=(usr/bin/valkey-server=redis-server) ;;
		*) echo "unknown server $1: there are redis-8 and valkey-9" >&2; exit 2 ;;
	esac
}

# apt_of FOLDER ARGUMENT...: run apt-get for a system of its own, which is empty, so that every library comes along.
apt_of() {
	local folder=$1
	shift
	apt-get -q -y --no-install-recommends -o "Dir::State=$folder/state" -o "Dir::State::status=$folder/status" -o "Dir::Cache=$folder/cache" \
		-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/nonexistent "$@" >"$folder/log" 2>&1 ||
		{ tail -n 5 "$folder/log" >&2; echo "apt-get failed" >&2; return 1; }
}

# fetch NAME
fetch() {
	local folder=$PWD/.bin/servers/$1 work root site key=/usr/share/keyrings/debian-archive-keyring.gpg
	describe "$1"
	[ ! -e "$folder/complete" ] || return 0
	site=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | sort -u | head -n 1) || true
	[ -n "$site" ] && [ -e "$key" ] || { echo "$1 is fetched from the Debian archive that apt has, and it has none" >&2; return 1; }
	rm -rf "$folder"
	work=$folder/work root=$folder/root
	mkdir -p "$work"/state/lists/partial "$work"/cache/archives/partial "$root"
	: >"$work/status"
	echo "deb [signed-by=$key] $site $suite main" >"$work/sources.list"
	apt_of "$work" update
	apt_of "$work" --download-only install "$package"
	for deb in "$work"/cache/archives/*.deb; do dpkg -x "$deb" "$root"; done
	rm -rf "$work"
	for program in "${programs[@]}"; do wrap "$root" "${program%=*}" "$folder/${program#*=}"; done
	touch "$folder/complete"
}

# wrap ROOT PROGRAM WRAPPER: write a script that starts a program with the loader and the libraries below ROOT.
wrap() {
	local loader libraries
	loader=$(find "$1" -name 'ld-linux*.so.*' -not -type d | head -n 1)
	libraries=$(find "$1" -name '*.so*' -path '*linux-gnu*' -printf '%h\n' | sort -u | paste -sd:)
	[ -n "$loader" ] && [ -e "$1/$2" ] || { echo "$1 lacks $2, or a loader" >&2; return 1; }
	printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$loader" "$libraries" "$1/$2" >"$3"
	chmod +x "$3"
}

for name; do
	fetch "$name"
	describe "$name"
	for program in "${programs[@]}"; do echo "$name: $(".bin/servers/$name/${program#*=}" --version)"; done
done
