#!/bin/sh
# tests/compare.sh BUILD [SCENARIO...]: predicts and executes scenarios/execute/SCENARIO.yaml or scenarios/replay/SCENARIO.yaml and leaves the comparison to
# psd-plot: its table here, compare.html, compare.csv and compare.svg in BUILD/compare/, beside predicted.csv and measured-ROUND.csv. The
# environment may set NODES (2 4), BANDWIDTHS (that of the scenario), SYSTEMS (those of the scenario: commas between them), ROUNDS (3) and the
# ITERATIONS of a run (6, of which two warm up), and the ATTEMPTS at each measurement of a calibration (3).
# What trains is calibrated first, at the scenario's own bandwidth: the prediction is of the calibrated copy, whatever the bandwidth, and the
# points that the calibration used do not count. CALIBRATED=yes takes that of the last time. Its layers are measured anew right before and right
# after each run, and each run has a prediction of its own. What is replayed needs neither: its constants are the scenario's.
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

# measure_layers FILE NODES PROFILE: a profile of a calibrated copy's layers as they are now
measure_layers() {
	model=$(sed -n "s/^ *graph: *\"*\([^\"]*\)\"*$/\1/p" "$1")
	batch=$(sed -n "s/^ *batch_per_worker: *//p" "$1")
	cores=$(nproc)
	busy=$(($2 < cores ? $2 : cores))
	"$build/bench/cpu" --profile "$model" "$batch" "$busy" >"$3"
}

# ticks: the hundredths of a second that others on this virtual machine's host took from its processors so far, and all there were
ticks() { awk '/^cpu / { print $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat; }

# replay_calmly [OPTION...]: psd-run; the results of the calmest run of up to three, until one of which less than 1 % was taken so. A run is not
# chosen by its own figures.
replay_calmly() {
	calmest=
	for _ in 1 2 3; do
		before=$(ticks)
		"$build/psd-run" --csv --quiet --dilation auto "$@" >"$out/run.csv"
		stolen=$(echo "$before $(ticks)" | awk '{ printf "%.0f", 1e4 * ($3 - $1) / ($4 - $2) }')
		if [ -z "$calmest" ] || [ "$stolen" -lt "$calmest" ]; then
			calmest=$stolen
			mv "$out/run.csv" "$out/rows.csv"
		fi
		[ "$calmest" -ge 100 ] || break
	done
	rm -f "$out/run.csv"
}

# train_calmly FILE NODES [OPTION...]: psd-run; the results of a run during which the machine's speed changed by less than 3 %, or of that of up to
# four during which it changed least: by its layers right before and right after, whose mean becomes the profile of the calibrated
# copy. A run is not chosen by its own figures.
train_calmly() {
	trained=$1 cluster_nodes=$2
	shift 2
	calmest=
	[ -f "$out/profile-before.csv" ] || measure_layers "$trained" "$cluster_nodes" "$out/profile-before.csv"
	for _ in 1 2 3 4; do
		"$build/psd-run" --csv --quiet --nodes "$cluster_nodes" "$@" "$trained" >"$out/run.csv"
		measure_layers "$trained" "$cluster_nodes" "$out/profile-after.csv"
		drifted=$(tests/profile-drift.sh "$out/profile-before.csv" "$out/profile-after.csv")
		if [ -z "$calmest" ] || [ "$drifted" -lt "$calmest" ]; then
			calmest=$drifted
			mv "$out/run.csv" "$out/rows.csv"
			tests/merge-profiles.sh "$out/profile-before.csv" "$out/profile-after.csv" >"$out/profile-kept.csv"
		fi
		mv "$out/profile-after.csv" "$out/profile-before.csv"
		[ "$calmest" -ge 30 ] || break
	done
	mv "$out/profile-kept.csv" "${trained%.yaml}-profile.csv"
	rm -f "$out/run.csv"
}

# predict FILE NODES SYSTEM [OPTION...]
predict() {
	predicted=$1 cluster_nodes=$2 of_system=$3
	shift 3
	"$build/psd-sim" --csv --quiet --system "$of_system" --set "sweep.nodes=$cluster_nodes" "$@" "$predicted" >"$out/rows.csv"
	append "$out/predicted.csv"
}

# run_point FILE NODES SYSTEM [OPTION...]: ROUNDS runs, and a prediction, or one for each run of what trains
run_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	for round in $(seq "$rounds"); do
		if $is_replay; then
			replay_calmly --nodes "$nodes" --iterations "$iterations" --system "$system" "$@" "$file"
		else
			train_calmly "$file" "$nodes" --iterations "$iterations" --system "$system" "$@"
		fi
		append "$out/measured-$(printf %03d "$round").csv"
		! $is_replay || [ "$round" -eq 1 ] || continue
		predict "$file" "$nodes" "$system" "$@"
	done
}

# trace_point FILE NODES SYSTEM [OPTION...]
trace_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	"$build/psd-sim" --csv --quiet --trace "$out/predicted.json" --system "$system" --set "sweep.nodes=$nodes" "$@" "$file" >"$out/rows.csv"
	dilation=
	! $is_replay || dilation="--dilation auto"
	# shellcheck disable=SC2086
	"$build/psd-run" --csv --quiet $dilation --trace "$out/measured.json" --nodes "$nodes" --iterations "$iterations" --system "$system" "$@" \
		"$file" >"$out/rows.csv"
	rm -f "$out/rows.csv" "$out/profile-before.csv"
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
	rm -f "$out/profile-before.csv"
	[ -n "$bandwidths" ] || run_systems "$2" "$3" "$1, $3 nodes"
	for rate in $bandwidths; do
		run_systems "$2" "$3" "$1, $3 nodes, $rate" --set "cluster.network.bandwidth=$rate"
	done
}

for scenario in "$@"; do
	file=$(scenario_file "$scenario")
	is_replay=true
	if ! grep -q 'replay: true' "$file"; then
		is_replay=false
		[ -n "${CALIBRATED:-}" ] || "$build/psd-run" --calibrate --attempts "${ATTEMPTS:-3}" "$file" -o "$out/$scenario.yaml"
		cp "$out/$scenario-points.csv" "$out/rows.csv"
		append "$out/points.csv"
		file=$out/$scenario.yaml
	fi
	for size in $clusters; do run_cluster "$scenario" "$file" "$size"; done
done
rm -f "$out"/profile-*.csv
set -- --traces "$out/predicted.json" "$out/measured.json"
[ ! -f "$out/points.csv" ] || set -- "$@" --calibrated "$out/points.csv"
plots/psd-plot compare "$out/predicted.csv" "$out"/measured-*.csv "$@" -o "$out/compare.html"
echo "written to $out/: compare.html, compare.csv, compare.svg"
