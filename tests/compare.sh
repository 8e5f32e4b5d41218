#!/bin/sh
# tests/compare.sh BUILD [SCENARIO...]: predicts and executes scenarios/execute/SCENARIO.yaml or
# scenarios/replay/SCENARIO.yaml and leaves the comparison to psd-plot: its table here, compare.html, compare.csv and
# compare.svg in BUILD/compare/, beside predicted.csv and measured-NUMBER.csv. The environment may set NODES (2 4, or
# those that a scenario's groups have together), BANDWIDTHS (that of the scenario), SYSTEMS (those of the scenario:
# commas between them), ROUNDS (3) and the ITERATIONS of a run (6, of which two warm up), the ATTEMPTS at each
# measurement of a calibration (3), and the CALIBRATIONS (1), each before ROUNDS runs of every point that trains.
# Numbers of runs go on from one calibration to the next; the spread told is then also that between the calibrations.
# A scenario that trains is calibrated first, at its own bandwidth. The prediction is of the calibrated copy, whatever
# the bandwidth, and the points that the calibration used do not count. recorded/ gets the runs after the last
# calibration in the form of traces/measured/. CALIBRATED=yes takes the calibration of the last time. Its layers are
# measured anew right before and right after each run, each time by the median of MEASUREMENTS (3), since the speed of a
# virtual machine may change within seconds. Each run has a prediction of its own, by the calibration before it. A
# replay needs neither: its constants are the scenario's.
# The traces are of the first point, from a run of their own that counts for nothing else.
set -eu
export LC_ALL=C
build=$1
shift
[ $# -gt 0 ] || set -- mlp cifar10-quick alexnet
rounds=${ROUNDS:-3}
calibrations=${CALIBRATIONS:-1}
clusters=${NODES:-2 4}
bandwidths=${BANDWIDTHS:-}
iterations=${ITERATIONS:-6}
attempts=${ATTEMPTS:-3}
measurements=${MEASUREMENTS:-3}
calibrated=${CALIBRATED:-no}
out=$build/compare

# refuse WORDS: ends with one line and status 2
refuse() {
	echo "compare: $1" >&2
	exit 2
}

# scenario_file NAME: prints the path of the scenario
scenario_file() {
	for file in "scenarios/execute/$1.yaml" "scenarios/replay/$1.yaml" "scenarios/$1.yaml"; do
		if [ -f "$file" ]; then
			echo "$file"
			return
		fi
	done
	refuse "no scenario '$1' in scenarios/execute, scenarios/replay or scenarios"
}

# append ROWS FILE: moves the results in ROWS to the end of FILE, which keeps one head
append() {
	if [ -s "$2" ]; then
		tail -n +2 "$1" >>"$2"
	else
		cp "$1" "$2"
	fi
	rm -f "$1"
}

# systems_of FILE: prints the names, a comma behind each
systems_of() { sed -n 's/^ *- {*name: *"*\([^",}]*\).*/\1/p' "$1" | tr '\n' ','; }

is_replay() { grep -q 'replay: true' "$1"; }

# sizes_of FILE: prints the numbers of nodes: NODES, or the one that groups of nodes have together
sizes_of() {
	if grep -q '^  groups:' "$1"; then
		sed -n -e 's/^sweep: {nodes: \[\([0-9]*\)\]}$/\1/p' \
			-e '/^sweep:$/,/^[a-z]/s/^  nodes: \[\([0-9]*\)\]$/\1/p' "$1"
	else
		echo "$clusters"
	fi
}

# check_count NAME VALUE MOST: refuses a number that psd-run would refuse
check_count() {
	case $2 in
	*[!0-9]* | 0* | '' | ???????*) refuse "'$1' is '$2', must be a whole number from 1 to $3" ;;
	esac
	[ "$2" -le "$3" ] || refuse "'$1' is '$2', must be a whole number from 1 to $3"
}

# rate_of RATE FILE: prints the rate in Gbps, so that 1000Mbps is 1Gbps; psd-sim refuses other text
rate_of() {
	of_size=$(sizes_of "$2")
	"$build/psd-sim" --estimate --csv --quiet --set "cluster.network.bandwidth=$1" \
		--set "sweep.nodes=${of_size%% *}" "$2" |
		awk -F , '
			# The title, in front, may have commas.
			NR == 1 { for (i = 1; i <= NF; i++) if ($i == "bandwidth_bps") behind = NF - i }
			NR == 2 { printf "%gGbps", 1e-9 * $(NF - behind) }
		'
}

# check_once NAME WORD...: refuses a word that comes twice, because its point would be run and predicted twice
check_once() {
	words_of=$1
	shift
	for word in "$@"; do
		n=0
		for other in "$@"; do [ "$word" != "$other" ] || n=$((n + 1)); done
		[ "$n" -eq 1 ] || refuse "'$words_of' has '$word' $n times, must have it once"
	done
}

# check_systems FILE: refuses SYSTEMS that are not in the file, or come twice
check_systems() {
	left=${SYSTEMS:+$SYSTEMS,}
	while [ -n "$left" ]; do
		case ,${left#*,} in
		*",${left%%,*},"*) refuse "'SYSTEMS' has '${left%%,*}' twice, must have it once" ;;
		esac
		case ,$(systems_of "$1") in
		*",${left%%,*},"*) ;;
		*) refuse "'SYSTEMS' has '${left%%,*}', must have systems of $1, commas between them" ;;
		esac
		left=${left#*,}
	done
}

# check_copy NAME: refuses CALIBRATED=yes without a copy that has every constant that this psd-run measures
check_copy() {
	for part in "$out/$1.yaml" "$out/$1-points.csv"; do
		[ -f "$part" ] || refuse "'CALIBRATED' is 'yes', but '$part' is missing: a run without it makes one"
	done
	part=$out/$1.yaml
	grep -q '^# machine.message:' "$part" ||
		refuse "'CALIBRATED' is 'yes', but '$part' has no machine.message: a run without it makes one that has"
}

# check SCENARIO...: refuses wrong settings before results of the last time are removed
check() {
	check_count ROUNDS "$rounds" 999
	check_count CALIBRATIONS "$calibrations" 999
	check_count ITERATIONS "$iterations" 999999
	check_count ATTEMPTS "$attempts" 100
	check_count MEASUREMENTS "$measurements" 100
	for size in $clusters; do check_count NODES "$size" 400; done
	case $calibrated in
	no) ;;
	yes)
		[ "$calibrations" -eq 1 ] ||
			refuse "'CALIBRATIONS' is '$calibrations', must be 1 where CALIBRATED=yes leaves them out"
		;;
	*) refuse "'CALIBRATED' is '$calibrated', must be 'yes' (as the last time) or 'no'" ;;
	esac
	# shellcheck disable=SC2086
	check_once NODES $clusters
	check_once SCENARIOS "$@"
	for checked in "$@"; do
		original=$(scenario_file "$checked")
		check_systems "$original"
		is_replay "$original" || [ "$calibrated" = no ] || check_copy "$checked"
	done
	rates=
	for rate in $bandwidths; do
		shown=$(rate_of "$rate" "$original")
		[ -n "$shown" ] || exit 2
		rates="$rates $shown"
	done
	# shellcheck disable=SC2086
	check_once BANDWIDTHS $rates
}

remove_last_time() {
	rm -rf "$out"/predicted.* "$out"/measured* "$out"/points.csv "$out"/profile-*.csv "$out"/recorded
	mkdir "$out/recorded"
	for left in run run-next run-kept prediction prediction-before prediction-after; do rm -f "$out/$left.csv"; done
}

# measure_layers FILE NODES PROFILE: writes a profile of a calibrated copy's layers, measured now
measure_layers() {
	model=$(sed -n "s/^ *graph: *\"*\([^\"]*\)\"*$/\1/p" "$1")
	batch=$(sed -n "s/^ *batch_per_worker: *//p" "$1")
	cores=$(nproc)
	workers=$(($2 * $(sed -n 's/^  workers_per_node: //p' "$1")))
	busy=$((workers < cores ? workers : cores))
	for part in $(seq "$measurements"); do
		"$build/bench/cpu" --profile "$model" "$batch" "$busy" >"$out/profile-part-$part.csv"
	done
	tests/merge-profiles.sh "$out"/profile-part-*.csv >"$3"
	rm -f "$out"/profile-part-*.csv
}

# ticks: prints two sums in hundredths of a second: those that others on this virtual machine's host took from its
# processors so far, and all of them
ticks() { awk '/^cpu / { print $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat; }

# replay_calmly [OPTION...]: runs psd-run up to three times, until a run loses less than 1 % of its ticks to others, and
# keeps the results of the run that lost least. A run is not chosen by its own figures.
replay_calmly() {
	calmest=
	for _ in 1 2 3; do
		before=$(ticks)
		"$build/psd-run" --csv --quiet --dilation auto "$@" >"$out/run-next.csv"
		stolen=$(echo "$before $(ticks)" | awk '{ printf "%.0f", 1e4 * ($3 - $1) / ($4 - $2) }')
		if [ -z "$calmest" ] || [ "$stolen" -lt "$calmest" ]; then
			calmest=$stolen
			mv "$out/run-next.csv" "$out/run.csv"
		fi
		[ "$calmest" -ge 100 ] || break
	done
	rm -f "$out/run-next.csv"
}

# predict PROFILE RESULT FILE NODES SYSTEM [OPTION...]: writes psd-sim's result for a calibrated copy with a profile's
# layers
predict() {
	layers=$1 result=$2 predicted=$3 cluster_nodes=$4 of_system=$5
	shift 5
	[ -z "$layers" ] || cp "$layers" "${predicted%.yaml}-profile.csv"
	"$build/psd-sim" --csv --quiet --system "$of_system" --set "sweep.nodes=$cluster_nodes" "$@" \
		"$predicted" >"$result"
}

# train_calmly FILE NODES SYSTEM [OPTION...]: runs psd-run up to four times, with the layers measured right before and
# right after, until the two predictions by these layers lie less than 3 % apart. It keeps the run with the least
# distance, and predicts it by the mean of both profiles. A run is not chosen by its own figures.
train_calmly() {
	trained=$1 at_nodes=$2 trained_system=$3
	shift 3
	calmest=
	[ -f "$out/profile-before.csv" ] || measure_layers "$trained" "$at_nodes" "$out/profile-before.csv"
	for _ in 1 2 3 4; do
		"$build/psd-run" --csv --quiet --nodes "$at_nodes" --iterations "$iterations" \
			--system "$trained_system" "$@" "$trained" >"$out/run.csv"
		measure_layers "$trained" "$at_nodes" "$out/profile-after.csv"
		for when in before after; do
			predict "$out/profile-$when.csv" "$out/prediction-$when.csv" "$trained" "$at_nodes" \
				"$trained_system" "$@"
		done
		drifted=$(tests/result-drift.sh "$out/prediction-before.csv" "$out/prediction-after.csv")
		if [ -z "$calmest" ] || [ "$drifted" -lt "$calmest" ]; then
			calmest=$drifted
			mv "$out/run.csv" "$out/run-kept.csv"
			tests/merge-profiles.sh "$out/profile-before.csv" "$out/profile-after.csv" \
				>"$out/profile-kept.csv"
		fi
		mv "$out/profile-after.csv" "$out/profile-before.csv"
		[ "$calmest" -ge 30 ] || break
	done
	predict "$out/profile-kept.csv" "$out/prediction.csv" "$trained" "$at_nodes" "$trained_system" "$@"
	mv "$out/run-kept.csv" "$out/run.csv"
	tests/record-run.sh "$trained" "$out/run.csv" "$out/profile-kept.csv" "$calmest" \
		"$out/recorded/$(basename "$trained" .yaml).csv"
	rm -f "$out/prediction-before.csv" "$out/prediction-after.csv"
}

# run_point FILE NODES SYSTEM [OPTION...]: runs the point ROUNDS times and predicts it: a replay once, training once a
# run
run_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	for round in $(seq $((turn * rounds - rounds + 1)) $((turn * rounds))); do
		if ! is_replay "$file"; then
			train_calmly "$file" "$nodes" "$system" "$@"
		else
			replay_calmly --nodes "$nodes" --iterations "$iterations" --system "$system" "$@" "$file"
			[ "$round" -gt 1 ] || predict "" "$out/prediction.csv" "$file" "$nodes" "$system" "$@"
		fi
		append "$out/run.csv" "$out/measured-$(printf %03d "$round").csv"
		[ ! -f "$out/prediction.csv" ] || append "$out/prediction.csv" "$out/predicted.csv"
	done
}

# trace_point FILE NODES SYSTEM [OPTION...]: writes both traces of the point
trace_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	"$build/psd-sim" --csv --quiet --trace "$out/predicted.json" --set "sweep.nodes=$nodes" \
		--system "$system" "$@" "$file" >"$out/traced.csv"
	dilation=
	! is_replay "$file" || dilation="--dilation auto"
	# shellcheck disable=SC2086
	"$build/psd-run" --csv --quiet $dilation --trace "$out/measured.json" --nodes "$nodes" \
		--iterations "$iterations" --system "$system" "$@" "$file" >"$out/traced.csv"
	rm -f "$out/traced.csv" "$out/profile-before.csv"
}

# run_systems FILE NODES WORDS [OPTION...]: runs a point of each system
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

# run_cluster NAME FILE NODES: runs the points of each bandwidth
run_cluster() {
	rm -f "$out/profile-before.csv"
	[ -n "$bandwidths" ] || run_systems "$2" "$3" "$1, $3 nodes"
	for rate in $bandwidths; do
		run_systems "$2" "$3" "$1, $3 nodes, $rate" --set "cluster.network.bandwidth=$rate"
	done
}

# train NAME FILE: calibrates, then runs every point, CALIBRATIONS times
train() {
	for turn in $(seq "$calibrations"); do
		[ "$calibrated" = yes ] || "$build/psd-run" calibrate --attempts "$attempts" "$2" -o "$out/$1.yaml"
		rm -f "$out/recorded/$1.csv"
		cp "$out/$1-points.csv" "$out/calibrated.csv"
		append "$out/calibrated.csv" "$out/points.csv"
		for size in $(sizes_of "$2"); do run_cluster "$1" "$out/$1.yaml" "$size"; done
	done
}

check "$@"
mkdir -p "$out"
remove_last_time
for scenario in "$@"; do
	file=$(scenario_file "$scenario") turn=1
	if is_replay "$file"; then
		for size in $(sizes_of "$file"); do run_cluster "$scenario" "$file" "$size"; done
	else
		train "$scenario" "$file"
	fi
done
rm -f "$out"/profile-*.csv
set -- --traces "$out/predicted.json" "$out/measured.json"
[ ! -f "$out/points.csv" ] || set -- "$@" --calibrated "$out/points.csv"
"$build/psd-plot" compare "$out/predicted.csv" "$out"/measured-*.csv "$@" -o "$out/compare.html"
echo "written to $out/: compare.html, compare.csv, compare.svg"
