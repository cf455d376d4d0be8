#!/usr/bin/env bash
# Runs the tests at full size, group by group, and writes what became of each into docs/benchmarks/soak.md.
#
#   tools/soak.sh [GROUP...]
#
# A group is a folder of internal (dlock), the tests of internal/e2e whose files begin with a word (e2e/sale), bench, or
# faults, which plants the faults of tools/faults. Without names it is all of them. A group that has passed is not run again
# until a file is changed that can change its result: any but docs, this tool and the tests of other groups, and more of it than lines of
# comment. So the page can be committed in between, and a mended test repeats its own group, and faults.
#
# Exit code: 0 if all groups have passed for the present files, 1 if not, 2 for a group that does not exist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
page=docs/benchmarks/soak.md

rooms() { find internal -mindepth 2 -name '*_test.go' -not -path 'internal/e2e/*' | cut -d/ -f2 | sort -u; }
words() { find internal/e2e -maxdepth 1 -name '*_test.go' -exec grep -l '^func Test[A-LN-Z]' {} + | sed -E 's|.*/([a-z]+)_.*|e2e/\1|' | sort -u; }
all=$(rooms && words && echo bench faults e2e/orderpath | tr ' ' '\n')

for group; do
	grep -qxF -- "$group" <<<"$all" || { echo "soak: no group $group; there are" $all >&2; exit 2; }
done

commit=$(git log -1 --format=%h --abbrev=10 -- . ':!docs')
[ -z "$(git status --porcelain -- . ':!docs')" ] || commit=$commit+changes
now= # the groups that this run has seen pass

# row GROUP VERDICT BEGAN SECONDS: write the row of a group in place of its last one.
row() {
	local minutes
	minutes=$(awk "BEGIN { printf \"%.1f\", $4 / 60 }")
	grep -vF "| $1 | " "$page" >"$page.new" || true
	echo "| $1 | $2 | $commit | $3 | $minutes |" >>"$page.new"
	mv "$page.new" "$page"
}

# run GROUP: run its tests.
run() {
	local how=(PARALLEL=3)
	case $1 in
		e2e/engines) how=(PARALLEL=1) ;; # it measures seconds
		e2e/limits) how=(PARALLEL=1 RACE=) ;; # it measures milliseconds; the race detector makes ten of one
	esac
	case $1 in
		bench) (cd bench && go run ./scale) && make test-bench ;; # the page on scale has the failovers of e2e/engines
		faults) make faults ;;
		e2e/orderpath) make soak-group PACKAGES=./internal/e2e/orderpath PARALLEL=7 ;;
		e2e/*) make soak-group "${how[@]}" PACKAGES=./internal/e2e RUN="^($(
			grep -hoE '^func Test[A-Za-z0-9]+' internal/e2e/"${1#e2e/}"_*_test.go internal/e2e/"${1#e2e/}"_test.go 2>/dev/null | cut -c6- | paste -sd '|'
		))\$\$" ;;
		*) make soak-group PACKAGES="./internal/$1/..." ;;
	esac
}

# passed GROUP: whether it needs no run. Changes that are not committed have no name, so with them only this run counts. It starts one
# process, because it is called for each group, twice.
passed() {
	local rows group code=(-I '^[[:space:]]*//( |$)') other=(. ':!docs' ':!tools/soak.sh' ':!internal/soak_test.go') # than docs, this tool, and the tests of other groups
	[[ " $now " != *" $1 "* ]] || return 0
	rows=$(<"$page")
	[[ $commit != *+changes && $rows =~ "| $1 | passed | "([0-9a-f]+)" | " ]] || return
	[ "$1" = faults ] || for group in $all; do
		case $group in
			"$1" | faults) ;;
			e2e/orderpath) other+=(":!internal/e2e/orderpath/*_test.go") ;;
			e2e/*) [[ $1 == e2e/* ]] || other+=(":!internal/e2e/*_test.go") ;; # one package: groups of e2e share their helpers
			bench) other+=(":!bench/*_test.go") ;;
			*) other+=(":!internal/$group/*_test.go") ;;
		esac
	done
	[ "$1" != e2e/orderpath ] || code=() # it counts lines
	git diff --quiet "${code[@]}" "${BASH_REMATCH[1]}" HEAD -- "${other[@]}" 2>/dev/null
}

for group in "${@:-$all}"; do for group in $group; do
	if passed "$group"; then
		echo "soak: $group has passed for these files"
		continue
	fi
	echo "soak: $group"
	began=$(date -u '+%F %H:%M') start=$SECONDS verdict=passed
	SHOP_TEST_SOAK=1 SHOP_TEST_REQUIRE=1 run "$group" && now="$now $group" || verdict=failed
	row "$group" "$verdict" "$began" $((SECONDS - start))
done; done

left=$(for group in $all; do passed "$group" || echo "$group"; done)
[ -z "$left" ] || { echo "soak: not passed for the files of $commit:" $left >&2; exit 1; }
