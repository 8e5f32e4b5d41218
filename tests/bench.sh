#!/bin/sh
# tests/bench.sh BUILD COMMIT NAME...: runs each benchmark, the script tests/bench/real/bench_NAME.sh or else the
# program BUILD/bench/NAME, which prints CSV with units in its header, and keeps it with host and commit in front as
# BUILD/bench/NAME.csv. Columns named is_... judge a bar. A missed bar, on a busy machine for instance, fails nothing,
# but is named at the end.
set -u
export LC_ALL=C
build=$1
commit=$2
shift 2
host=$(uname -n)

run() {
	if [ -f "tests/bench/real/bench_$1.sh" ]; then
		"tests/bench/real/bench_$1.sh" "$build"
	else
		"$build/bench/$1"
	fi
}

for name in "$@"; do
	echo "bench: $name"
	run "$name" >"$build/bench/$name.out" || { echo "bench: $name failed" >&2; exit 1; }
	awk -v host="$host" -v commit="$commit" '{ print (NR == 1 ? "host,commit," : host "," commit ",") $0 }' \
		"$build/bench/$name.out" >"$build/bench/$name.csv"
	cat "$build/bench/$name.csv"
done

for name in "$@"; do
	awk -F , -v name="$name" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^is_/) judges[i] = $i; next }
		{
			for (i in judges) {
				if ($i == "yes") n_met++
				if ($i == "no") missed = missed "\n  not " substr(judges[i], 4) ": " $0
			}
		}
		END { if (n_met || missed) print "bench: " name ": " n_met + 0 " bars met" missed }
	' "$build/bench/$name.csv"
done
