#!/bin/sh
# tests/run.sh BUILD SUITE... -- SCENARIO...: runs the binaries of tests in BUILD and compares the golden files. The
# last line is "N passed, N failed", each case and each golden file counting one, and each failure is named again just
# above it. The status is 0 only when something ran and nothing failed. In the environment:
#   CASES   the cases that run. Default "all"; "gate" leaves those in tests/cases.txt, SLICE runs those of that slice
#   FILTER  with "all": a pattern, only the cases whose suite/case matches it
#   PART    the same again: a case matches both
#   CASES_FILE  another file instead of tests/cases.txt
set -u
export LC_ALL=C
build=$1
shift

export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"

cases=${CASES:-all}
passed=0
failed=0
left=0
failures= # the failed assertions, tests and golden files, a line each

# choose SUITE: prints a line "stale PATTERN" for each pattern of tests/cases.txt that no case of SUITE matches, one
# "left N" for those that the gate leaves, and "filter PATTERN" with that of the cases that run, empty without any.
choose() {
	"$build/$1" --list | awk -v suite="$1" -v cases="$cases" '
		function add(list, pattern) { return list (list ? "|" : "") pattern }
		FNR == NR {
			if ($0 ~ /^#/ || $2 != suite) next
			slice[++n] = $1
			pattern[n] = regex[n] = $3
			gsub(/[*]/, ".*", regex[n])
			next
		}
		{
			n_all++
			is_left = is_kept = 0
			for (i = 1; i <= n; i++) {
				if ($0 !~ "^" regex[i] "$") continue
				n_cases[i]++
				if (slice[i] == "gate") is_kept = 1
				else is_left = 1
			}
			n_left += is_left && !is_kept
		}
		END {
			for (i = 1; i <= n; i++) {
				if (!n_cases[i]) print "stale " pattern[i]
				else if (slice[i] == "gate") kept = add(kept, pattern[i])
				else left = add(left, pattern[i])
				if (slice[i] == cases) chosen = add(chosen, pattern[i])
			}
			if (cases != "gate")
				print "filter " (chosen ? "@(" chosen ")" : "")
			else {
				print "left " n_left + 0
				filter = !left ? "*" : "@(!(" left ")" (kept ? "|" kept : "") ")"
				print "filter " (n_all && n_left == n_all ? "" : filter)
			}
		}' "${CASES_FILE:-tests/cases.txt}" -
}

# run SUITE: adds its cases to passed and failed.
run() {
	log=$build/$1.log
	filter=${FILTER:-*}
	if [ "$cases" != all ]; then
		chosen=$(choose "$1")
		filter=$(echo "$chosen" | sed -n 's/^filter //p')
		left=$((left + $(echo "$chosen" | awk '$1 == "left" { n += $2 } END { print n + 0 }')))
		stale=$(echo "$chosen" | sed -n "s|^stale |tests: no case of $1 matches in tests/cases.txt: |p")
		if [ -n "$stale" ]; then
			failures="$failures$stale
"
			failed=$((failed + $(echo "$stale" | wc -l)))
		fi
		[ -n "$filter" ] || return
	fi
	# Whole runs mostly wait, for a link, a time limit or each other.
	case $1 in
	psd-run-tests) jobs=$((3 * $(nproc))) ;;
	*) jobs=$(nproc) ;;
	esac
	"$build/$1" --jobs "$jobs" --filter "$filter" ${PART:+--filter "$PART"} >"$log" 2>&1
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
	elif [ "$status" -ne 0 ] && [ "$passing" -eq "$tested" ]; then
		echo "tests: $build/$1 ended with status $status although every test passed" >&2
		tested=$((tested + 1))
	fi
	# Leaks and data races of processes whose ends a test ignores. SimGrid 3.32 leaks nothing that is found, so
	# nothing is suppressed.
	found=$(grep -cE "ERROR: LeakSanitizer|WARNING: ThreadSanitizer" "$log")
	[ "$found" -eq 0 ] || echo "tests: $found processes with leaks or data races, see $log" >&2
	[ "$passing" -eq "$tested" ] || found=0 # a case that leaks itself has failed
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

[ "$left" -eq 0 ] || echo "tests: $left cases are left for the deep checks (tests/cases.txt)"
[ "$failed" -eq 0 ] || echo "$failures" | grep .
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
