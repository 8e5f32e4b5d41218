#!/bin/sh
# tests/run.sh BUILD SUITE... -- SCENARIO...: runs the Criterion binaries in BUILD and compares the golden files. The
# last line is "N passed, N failed", each Criterion case and each golden file counting one, and what failed is said
# again just above it; the status is 0 only when something ran and nothing failed. FILTER in the environment: only the
# cases whose suite/case matches this pattern.
set -u
export LC_ALL=C
build=$1
shift

export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"

passed=0
failed=0
failures= # the failed assertions, tests and golden files, a line each

# reports LOG: how many processes leaked or raced. Criterion's own runner now and then ends before it has freed the time
# limit of its last test: a report is passed over when every allocation in it was called for by Criterion's library
# itself (frame 1). A suppression by library would not do, as Criterion calls the tests, too, and stands further up in
# the stack of each.
reports() {
	awk '
		/ERROR: LeakSanitizer/ { inside = 1; leaks = 0 }
		/WARNING: ThreadSanitizer/ { count++ }
		inside && / leak of / { leaks++ }
		inside && /^ *#1 .*libcriterion\.so/ { leaks-- }
		inside && /^SUMMARY:/ { if (leaks) count++; inside = 0 }
		END { print count + inside + 0 }' "$1"
}

# run SUITE: adds its cases to passed and failed.
run() {
	log=$build/$1.log
	"$build/$1" --timeout 300 ${FILTER:+--filter "$FILTER"} >"$log" 2>&1
	status=$?
	cat "$log"
	failures="$failures$(grep -E '^\[(----|FAIL|CRASH|TIME)\] +[^ ]' "$log" | sed "s/^/$1: /")
"

	# [====] Synthesis: Tested: 4 | Passing: 3 | Failing: 1 | Crashing: 0
	synthesis=$(sed -n 's/.*Synthesis: Tested: \([0-9]*\) | Passing: \([0-9]*\) | Failing.*/\1 \2/p' "$log" |
		tail -n 1)
	tested=${synthesis% *}
	passing=${synthesis#* }
	if [ -z "$synthesis" ]; then
		echo "tests: $build/$1 gave no synthesis (status $status), see $log" >&2
		tested=1 passing=0
	elif [ "$tested" -eq 0 ]; then
		echo "tests: there is no test in $build/$1" >&2
		tested=1 passing=0
	elif [ "$status" -ne 0 ] && [ "$passing" -eq "$tested" ] && ! grep -q "ERROR: LeakSanitizer" "$log"; then
		echo "tests: $build/$1 ended with status $status although every test passed" >&2
		tested=$((tested + 1))
	fi
	# A leak under SANITIZE=address shows when a test process has already ended well, where Criterion does not look,
	# and a race under SANITIZE=thread may be of a worker whose end a test ignores. SimGrid 3.32 leaks nothing that
	# is found, so nothing is suppressed.
	found=$(reports "$log")
	[ "$found" -eq 0 ] || echo "tests: $found processes with leaks or data races, see $log" >&2
	passed=$((passed + passing))
	failed=$((failed + tested - passing + found))
}

while [ "$1" != -- ]; do
	run "$1"
	shift
done
shift

golden=$(tests/golden.sh compare "$build" "$@")
[ -z "$golden" ] || echo "$golden"
passed=$((passed + $(echo "$golden" | grep -c '^golden: same ')))
failed=$((failed + $(echo "$golden" | grep -c '^golden: differs ')))
failures="$failures$(echo "$golden" | grep '^golden: differs ')"

[ "$failed" -eq 0 ] || echo "$failures" | grep .
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
