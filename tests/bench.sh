#!/bin/sh
# tests/bench.sh BUILD COMMIT NAME...: runs each BUILD/bench/NAME, which prints CSV with units in its header, and keeps it with host and
# commit in front as BUILD/bench/NAME.csv.
set -u
export LC_ALL=C
build=$1
commit=$2
shift 2
host=$(uname -n)

for name in "$@"; do
	echo "bench: $name"
	"$build/bench/$name" >"$build/bench/$name.out" || { echo "bench: $name failed" >&2; exit 1; }
	awk -v host="$host" -v commit="$commit" '{ print (NR == 1 ? "host,commit," : host "," commit ",") $0 }' \
		"$build/bench/$name.out" >"$build/bench/$name.csv"
	cat "$build/bench/$name.csv"
done
