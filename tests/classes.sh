#!/bin/sh
# tests/classes.sh BUILD [SCENARIO.yaml...]: compares the CSV of simulations with and without --every-node, which has
# nine digits. Default: all scenarios with golden files or published values. The last line is "N passed, N failed".
set -u
export LC_ALL=C
build=$1
shift
[ $# -gt 0 ] ||
	set -- scenarios/*.yaml scenarios/gradientflow/*.yaml scenarios/poseidon-*/*.yaml scenarios/stacks/*.yaml
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

for scenario in "$@"; do
	"$build/psd-sim" --quiet --csv "$scenario" >"$work/some" 2>"$work/some.err"
	some=$?
	"$build/psd-sim" --quiet --csv --every-node "$scenario" >"$work/all" 2>"$work/all.err"
	all=$?
	if [ "$some" = "$all" ] && cmp -s "$work/some" "$work/all" && cmp -s "$work/some.err" "$work/all.err"; then
		passed=$((passed + 1))
		continue
	fi
	echo "classes: differs with --every-node: $scenario"
	diff -u "$work/all" "$work/some" | head -n 20
	diff -u "$work/all.err" "$work/some.err" | head -n 5
	failed=$((failed + 1))
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
