#!/bin/sh
# tests/fuzz.sh FUZZ-BUILD NAME SECONDS: runs one libFuzzer target on a copy of tests/fuzz/corpus/NAME; says how many
# inputs it tried, and on a finding shows it and fails. The finding stays beside the binary.
set -u
build=$1
name=$2
seconds=$3
corpus=$build/corpus/$name
log=$build/$name.log

mkdir -p "$corpus" "$build/found"
[ ! -d "tests/fuzz/corpus/$name" ] || cp -R "tests/fuzz/corpus/$name/." "$corpus/"
set -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	-artifact_prefix="$build/found/$name-"
[ ! -f "tests/fuzz/$name.dict" ] || set -- "$@" -dict="tests/fuzz/$name.dict"

echo "  FUZZ     $name, $seconds s"
if ! "$build/$name" "$@" "$corpus" >"$log" 2>&1; then
	grep -vE '^#[0-9]+' "$log" | tail -n 60 >&2
	echo "fuzz: $name found something, see $log and $build/found/" >&2
	exit 1
fi
inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
if [ "${inputs:-0}" -eq 0 ]; then
	echo "fuzz: $name tried no input, see $log" >&2
	exit 1
fi
echo "fuzz: $name: $inputs inputs, nothing found"
