#!/usr/bin/env bash
# Plants each fault of tools/faults in a worktree of HEAD, and requires that the test which the fault names fails.
#
#   tools/faults.sh [--control] [all | path | NAME...]
#
# With --control it plants nothing and requires that each test passes: a test that fails in any case proves nothing.
# FAULTS_LOG=N shows the last N lines of a run that did not go as required.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

want=red
if [ "${1-}" = --control ]; then
	want=green
	shift
fi
patches=()
for name in "${@:-all}"; do
	case $name in
		all) patches+=("$root"/tools/faults/*.patch "$root"/tools/faults/path/*.patch) ;;
		path) patches+=("$root"/tools/faults/path/*.patch) ;;
		*) patches+=("$(find "$root/tools/faults" -name "$(basename "$name" .patch).patch" | grep . || echo "$name")") ;;
	esac
done

work=$(mktemp -d)
tree=$work/tree
trap 'git -C "$root" worktree remove --force "$tree" || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
git worktree add --quiet --detach "$tree" HEAD
cd "$tree"

# Without paths in the binaries the build cache serves every checkout. A server that is not installed skips its test, and
# a skipped test is not red. Tests have their usual size.
export GOFLAGS="${GOFLAGS-} -trimpath"
unset SHOP_TEST_REQUIRE SHOP_TEST_SOAK

field() { sed -n "s/^$1: //p;/^diff /q" "$2"; }

# verdict runs test $2 of package $1, and prints what became of it: red, if it failed as a test; green, if it passed.
verdict() {
	local run=() rc=0
	IFS=/ read -ra run <<<"$2"
	run=("${run[@]/#/^(}")
	run=("${run[@]/%/)\$}")
	go test -vet=off -count=1 -timeout 5m -v -run "$(IFS=/ && echo "${run[*]}")" "$1" >"$work/log" 2>&1 || rc=$?
	if grep -qE '\[(build|setup) failed\]' "$work/log"; then
		echo "does not compile"
	elif grep -q 'no tests to run' "$work/log"; then
		echo "no such test"
	elif grep -q '^panic: test timed out' "$work/log"; then
		echo "the test timed out"
	elif [ "$rc" != 0 ]; then
		if grep -qE '^ *--- FAIL: ' "$work/log"; then echo red; else echo "failed, but not as a test"; fi
	elif grep -qE '^ *--- SKIP: ' "$work/log"; then
		echo "the test was skipped"
	else
		echo green
	fi
}

failed=0
for patch in "${patches[@]}"; do
	began=$SECONDS name=$(basename "$patch" .patch)
	if [ ! -f "$patch" ]; then
		result="no such fault"
	elif [ $want = red ] && ! git apply --3way "$patch" >"$work/log" 2>&1; then
		result="the patch does not apply: plant the fault again"
	else
		result=$(verdict "$(field Package "$patch")" "$(field Test "$patch")")
	fi
	git reset --quiet --hard
	line=$result
	if [ "$result" != $want ]; then
		failed=1
		line="NOT ${want^^}: $result"
		[ "$result" != green ] || line+=" (no test holds this guarantee)"
	fi
	printf '%-48s %4d s  %s\n' "$name" $((SECONDS - began)) "$line"
	if [ "$result" != $want ] && [ -n "${FAULTS_LOG-}" ]; then tail -n "$FAULTS_LOG" "$work/log"; fi
done
exit $failed
