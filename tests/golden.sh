#!/bin/sh
# tests/golden.sh compare|write BUILD SCENARIO...: SCENARIO is a name below scenarios/ without its ending; its CSV is
# kept as tests/golden/SCENARIO.csv. `compare` prints "golden: same NAME" or "golden: differs NAME" with the differing
# lines, and fails if one differs; `write` rewrites them. GOLDEN_DIR in the environment names another folder of expected
# files.
set -u
export LC_ALL=C
verb=$1
build=$2
shift 2
expected_dir=${GOLDEN_DIR:-tests/golden}
status=0

for name in "$@"; do
	expected=$expected_dir/$name.csv
	actual=$build/golden/$name.csv
	mkdir -p "$(dirname "$actual")"
	if ! "$build/psd-sim" --csv "scenarios/$name.yaml" >"$actual" 2>"$actual.err"; then
		echo "golden: differs $name (psd-sim failed: $(head -n 1 "$actual.err"))"
		status=1
	elif [ "$verb" = write ]; then
		mkdir -p "$(dirname "$expected")"
		cmp -s "$actual" "$expected" ||
			{ cp "$actual" "$expected" && echo "golden: rewritten $expected"; } || status=1
	elif [ ! -f "$expected" ]; then
		echo "golden: differs $name ($expected is missing, make golden writes it)"
		status=1
	elif cmp -s "$expected" "$actual"; then
		echo "golden: same $name"
	else
		echo "golden: differs $name"
		diff -u "$expected" "$actual" | head -n 40
		status=1
	fi
done
exit $status
