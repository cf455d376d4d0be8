#!/usr/bin/env bash
# Makes sure that Node.js is installed, in a version that the linters of the API description and its TypeScript client run on.
set -euo pipefail

want=20.19
enough() {
	command -v npm >/dev/null && command -v node >/dev/null &&
		[[ $(printf '%s\n' "$want" "$(node -p process.versions.node)" | sort -V | head -n 1) == "$want" ]]
}
enough && exit 0

sudo=()
((EUID == 0)) || sudo=(sudo -n)
if command -v apt-get >/dev/null && "${sudo[@]}" true 2>/dev/null; then
	echo "installing nodejs npm" >&2
	log=$(mktemp)
	for step in "update -q" "install -q -y --no-install-recommends nodejs npm"; do
		# shellcheck disable=SC2086 # a step is several words
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get $step >"$log" 2>&1 || { tail -n 20 "$log" >&2; break; }
	done
	rm -f "$log"
	enough && exit 0
fi
echo "missing Node.js: install node $want or later and npm (macOS: brew install node), then run this again" >&2
exit 1
