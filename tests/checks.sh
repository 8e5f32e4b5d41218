#!/bin/bash
# tests/checks.sh gate|deep|SLICE...: runs checks of tests/checks.txt: the steps of the gate, all slices of the deep
# checks, or a slice, which is its name or its number; `turn` prints the number of the slice whose turn it is at this
# commit. Stops at the first failure. The last line is "N passed, N failed": each step or slice counts one, and so does
# each test and each golden file that it reports. Warnings are errors. CHECKS in the environment: another table.
set -euo pipefail
export DEV=1
unset MAKEFLAGS # settings of a make that calls this are in the environment, too
table=${CHECKS:-tests/checks.txt}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
steps=0

# rows KIND: "NAME COMMAND" of each row of that kind.
rows() {
	awk -v kind="$1" '$1 == kind { sub(/^[^ ]+ +/, ""); print }' "$table"
}

# Consecutive commits take consecutive slices. A shallow clone cannot count its commits: their hashes choose there.
turn() {
	local n_slices number
	n_slices=$(rows deep | wc -l)
	[ "$n_slices" -gt 0 ] || { echo "checks: $table has no slice" >&2; exit 2; }
	if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ]; then
		number=$(git rev-list --count HEAD)
	else
		number=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null | cut -c 1-7 || echo 0)))
	fi
	echo $((number % n_slices + 1))
}

sum() {
	awk -v steps="$steps" -v failed_steps="$1" '
		/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 }
		END { print passed + steps " passed, " failed + failed_steps " failed" }' "$log"
}

# step NAME COMMAND: runs it, keeps its output for the sum at the end, stops everything when it fails.
step() {
	local name=$1 command=$2 start=$SECONDS
	echo "=== $name: $command"
	if ! bash -c "$command" 2>&1 </dev/null | tee -a "$log"; then
		echo "=== $name failed after $((SECONDS - start)) s"
		sum 1
		exit 1
	fi
	echo "=== $name done in $((SECONDS - start)) s"
	steps=$((steps + 1))
}

# slice NUMBER NAME COMMAND
slice() {
	echo "=== slice $1 of $(rows deep | wc -l), $2; to repeat it: make check-deep SLICE=$1"
	step "$2" "$3"
}

# run gate|deep|SLICE: a slice by its number or its name.
run() {
	local number=0 found=0 name command
	if [ "$1" = gate ]; then
		while read -r name command; do
			step "$name" "$command"
		done < <(rows gate)
		return
	fi
	while read -r name command; do
		number=$((number + 1))
		if [ "$1" = deep ] || [ "$1" = "$number" ] || [ "$1" = "$name" ]; then
			slice "$number" "$name" "$command"
			found=1
		fi
	done < <(rows deep)
	if [ "$found" -eq 0 ]; then
		echo "checks: $table has $number slices, there is no slice '$1'" >&2
		exit 2
	fi
}

if [ $# -eq 0 ]; then
	echo "usage: tests/checks.sh gate|deep|turn|SLICE..." >&2
	exit 2
elif [ "$1" = turn ]; then
	turn
	exit
fi
for wanted in "$@"; do
	run "$wanted"
done
sum 0
[ "$steps" -gt 0 ]
