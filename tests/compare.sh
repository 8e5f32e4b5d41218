#!/bin/sh
# tests/compare.sh BUILD [SCENARIO...]: predicts and executes scenarios/execute/SCENARIO.yaml or scenarios/replay/SCENARIO.yaml and leaves the comparison to
# psd-plot: its table here, compare.html, compare.csv and compare.svg in BUILD/compare/, beside predicted.csv and measured-ROUND.csv. The
# environment may set NODES (2 4), BANDWIDTHS (that of the scenario), SYSTEMS (those of the scenario: commas between them), ROUNDS (3) and the
# ITERATIONS of a run (6, of which two warm up), and the ATTEMPTS at each measurement of a calibration (3).
# What trains is calibrated first, at the scenario's own bandwidth: the prediction is of the calibrated copy, whatever the bandwidth, and the
# points that the calibration used do not count. CALIBRATED=yes takes that of the last time. What is replayed needs none: its constants are the scenario's.
# The traces are of the first point, from a run of their own that counts for nothing else.
set -eu
export LC_ALL=C
build=$1
shift
[ $# -gt 0 ] || set -- mlp cifar10-quick alexnet
rounds=${ROUNDS:-3}
clusters=${NODES:-2 4}
bandwidths=${BANDWIDTHS:-}
iterations=${ITERATIONS:-6}
out=$build/compare
mkdir -p "$out"
rm -f "$out"/predicted.* "$out"/measured* "$out"/points.csv "$out"/profile-*.csv

# scenario_file NAME
scenario_file() {
	for file in "scenarios/execute/$1.yaml" "scenarios/replay/$1.yaml" "scenarios/$1.yaml"; do
		if [ -f "$file" ]; then
			echo "$file"
			return
		fi
	done
	echo "compare: no scenario '$1' in scenarios/execute, scenarios/replay or scenarios" >&2
	return 2
}

# append FILE: the results in BUILD/compare/rows.csv to FILE, which keeps one head
append() {
	if [ -s "$1" ]; then
		tail -n +2 "$out/rows.csv" >>"$1"
	else
		cp "$out/rows.csv" "$1"
	fi
	rm -f "$out/rows.csv"
}

# systems_of FILE: the names, a comma behind each
systems_of() { sed -n 's/^ *- {*name: *"*\([^",}]*\).*/\1/p' "$1" | tr '\n' ','; }

# add_profile FILE NODES: one more measurement of a calibrated copy's layers
add_profile() {
	model=$(sed -n "s/^ *graph: *\"*\([^\"]*\)\"*$/\1/p" "$1")
	batch=$(sed -n "s/^ *batch_per_worker: *//p" "$1")
	cores=$(nproc)
	busy=$(($2 < cores ? $2 : cores))
	n_profiles=$((n_profiles + 1))
	"$build/bench/cpu" --profile "$model" "$batch" "$busy" >"$out/profile-$n_profiles.csv"
}

# merge_profiles FILE: their median, as that of the runs is what they are compared with, becomes the profile of the calibrated copy
merge_profiles() {
	tests/merge-profiles.sh "$out"/profile-*.csv >"${1%.yaml}-profile.csv"
	rm -f "$out"/profile-*.csv
}

# ticks: the hundredths of a second that others on this virtual machine's host took from its processors so far, and all there were
ticks() { awk '/^cpu / { print $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat; }

# run_calmly [OPTION...]: psd-run; the results of the calmest run of up to three, until one of which less than 1 % was taken so. A run is not
# chosen by its own figures.
run_calmly() {
	calmest=
	for _ in 1 2 3; do
		before=$(ticks)
		"$build/psd-run" --csv --quiet "$@" >"$out/run.csv"
		stolen=$(echo "$before $(ticks)" | awk '{ printf "%.0f", 1e4 * ($3 - $1) / ($4 - $2) }')
		if [ -z "$calmest" ] || [ "$stolen" -lt "$calmest" ]; then
			calmest=$stolen
			mv "$out/run.csv" "$out/rows.csv"
		fi
		[ "$calmest" -ge 100 ] || break
	done
	rm -f "$out/run.csv"
}

# run_point FILE NODES SYSTEM [OPTION...]: a prediction and ROUNDS runs; $dilation is none where the scenario trains
run_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	n_profiles=0
	for round in $(seq "$rounds"); do
		[ -n "$dilation" ] || add_profile "$file" "$nodes"
		# shellcheck disable=SC2086
		run_calmly $dilation --nodes "$nodes" --iterations "$iterations" --system "$system" "$@" "$file"
		append "$out/measured-$round.csv"
	done
	if [ -z "$dilation" ]; then
		add_profile "$file" "$nodes"
		[ "$rounds" -gt 1 ] || add_profile "$file" "$nodes" # of two, one disturbed moment would move the median
		merge_profiles "$file"
	fi
	"$build/psd-sim" --csv --quiet --system "$system" --set "sweep.nodes=$nodes" "$@" "$file" >"$out/rows.csv"
	append "$out/predicted.csv"
}

# trace_point FILE NODES SYSTEM [OPTION...]
trace_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	"$build/psd-sim" --csv --quiet --trace "$out/predicted.json" --system "$system" --set "sweep.nodes=$nodes" "$@" "$file" >"$out/rows.csv"
	# shellcheck disable=SC2086
	"$build/psd-run" --csv --quiet $dilation --trace "$out/measured.json" --nodes "$nodes" --iterations "$iterations" --system "$system" "$@" \
		"$file" >"$out/rows.csv"
	rm -f "$out/rows.csv"
}

# run_systems FILE NODES WORDS [OPTION...]: a point of each system
run_systems() {
	of_file=$1 cluster=$2 words=$3
	shift 3
	left=${SYSTEMS:+$SYSTEMS,}
	left=${left:-$(systems_of "$of_file")}
	while [ -n "$left" ]; do
		of_point=${left%%,*} left=${left#*,}
		echo "compare: $words, $of_point" >&2
		run_point "$of_file" "$cluster" "$of_point" "$@"
		[ -f "$out/measured.json" ] || trace_point "$of_file" "$cluster" "$of_point" "$@"
	done
}

# run_cluster NAME FILE NODES
run_cluster() {
	[ -n "$bandwidths" ] || run_systems "$2" "$3" "$1, $3 nodes"
	for rate in $bandwidths; do
		run_systems "$2" "$3" "$1, $3 nodes, $rate" --set "cluster.network.bandwidth=$rate"
	done
}

for scenario in "$@"; do
	file=$(scenario_file "$scenario")
	dilation="--dilation auto"
	if ! grep -q 'replay: true' "$file"; then
		dilation=""
		[ -n "${CALIBRATED:-}" ] || "$build/psd-run" --calibrate --attempts "${ATTEMPTS:-3}" "$file" -o "$out/$scenario.yaml"
		cp "$out/$scenario-points.csv" "$out/rows.csv"
		append "$out/points.csv"
		file=$out/$scenario.yaml
	fi
	for size in $clusters; do run_cluster "$scenario" "$file" "$size"; done
done
set -- --traces "$out/predicted.json" "$out/measured.json"
[ ! -f "$out/points.csv" ] || set -- "$@" --calibrated "$out/points.csv"
plots/psd-plot compare "$out/predicted.csv" "$out"/measured-*.csv "$@" -o "$out/compare.html"
echo "written to $out/: compare.html, compare.csv, compare.svg"
