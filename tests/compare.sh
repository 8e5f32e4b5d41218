#!/bin/sh
# tests/compare.sh BUILD [SCENARIO...]: predicts and executes scenarios/execute/SCENARIO.yaml (or scenarios/SCENARIO.yaml) and leaves the comparison to
# psd-plot: its table here, compare.html, compare.csv and compare.svg in BUILD/compare/, beside predicted.csv and measured-ROUND.csv. The
# environment may set NODES (2 4), BANDWIDTHS (that of the scenario), SYSTEMS (PS,Hybrid,Ring: commas between them), ROUNDS (3) and the
# ITERATIONS of a run (6).
# Both read the same file, a copy in BUILD/compare/ whose `compute` is a profile that was measured just before, with as many workers busy as
# the run has: where they are more than the machine's cores, each computes so much slower. A layer whose gradient is rebuilt from factors
# computes less of it than the profile, and more where it is rebuilt. Everything else, what hosts cost in particular, is as the scenario says.
# The traces are of the first scenario, nodes and bandwidth with the last system, from a run of their own that counts for nothing else.
set -eu
export LC_ALL=C
build=$1
shift
[ $# -gt 0 ] || set -- alexnet mlp
rounds=${ROUNDS:-3}
clusters=${NODES:-2 4}
bandwidths=${BANDWIDTHS:-}
systems=${SYSTEMS:-PS,Hybrid,Ring}
iterations=${ITERATIONS:-6} # of each run, two of which warm up
out=$build/compare
mkdir -p "$out"
rm -f "$out"/predicted.* "$out"/measured*

# scenario_file NAME
scenario_file() {
	for file in "scenarios/execute/$1.yaml" "scenarios/$1.yaml"; do
		if [ -f "$file" ]; then
			echo "$file"
			return
		fi
	done
	echo "compare: no scenario '$1' in scenarios/execute or scenarios" >&2
	return 2
}

# field FILE KEY: of the `model` line
field() { sed -n "s/^model:.*$2: *\([^,}]*\).*/\1/p" "$1"; }

# profile SCENARIO NODES: the one of a worker among as many that compute at a time, and the copy of the scenario that uses it
profile() {
	file=$(scenario_file "$1")
	model=$(dirname "$file")/$(field "$file" graph)
	for worker in $(seq "$2"); do
		"$build/bench/cpu" --profile "$model" "$(field "$file" batch_per_worker)" >"$out/profile-$worker.csv" &
	done
	wait
	mv "$out/profile-1.csv" "$out/$1-$2-profile.csv"
	rm -f "$out"/profile-*.csv
	sed -e "s|^model: {graph: \([^,]*\)|model: {graph: $(realpath "$model")|" \
		-e "s|^compute:.*|compute: {profile: $1-$2-profile.csv}|" "$file" >"$out/$1-$2.yaml"
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

# run_point FILE NODES SYSTEM [OPTION...]: a prediction and ROUNDS runs
run_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	"$build/psd-sim" --csv --quiet --system "$system" --set "sweep.nodes=$nodes" "$@" "$file" >"$out/rows.csv"
	append "$out/predicted.csv"
	for round in $(seq "$rounds"); do
		"$build/psd-run" --csv --quiet --nodes "$nodes" --iterations "$iterations" --system "$system" "$@" "$file" >"$out/rows.csv"
		append "$out/measured-$round.csv"
	done
}

# trace_point FILE NODES SYSTEM [OPTION...]
trace_point() {
	file=$1 nodes=$2 system=$3
	shift 3
	"$build/psd-sim" --csv --quiet --trace "$out/predicted.json" --system "$system" --set "sweep.nodes=$nodes" "$@" "$file" >"$out/rows.csv"
	"$build/psd-run" --csv --quiet --trace "$out/measured.json" --nodes "$nodes" --iterations "$iterations" --system "$system" "$@" \
		"$file" >"$out/rows.csv"
	rm -f "$out/rows.csv"
}

# run_systems SCENARIO NODES BANDWIDTH [OPTION...]: a point of each system
run_systems() {
	name=$1 cluster=$2 bandwidth=$3
	shift 3
	left=$systems,
	while [ -n "$left" ]; do
		of_point=${left%%,*} left=${left#*,}
		echo "compare: $name, $of_point, $cluster nodes${bandwidth:+, $bandwidth}" >&2
		run_point "$out/$name-$cluster.yaml" "$cluster" "$of_point" "$@"
	done
	[ -f "$out/measured.json" ] || trace_point "$out/$name-$cluster.yaml" "$cluster" "$of_point" "$@"
}

# run_bandwidths SCENARIO NODES
run_bandwidths() {
	if [ -z "$bandwidths" ]; then
		run_systems "$1" "$2" ""
	fi
	for rate in $bandwidths; do
		set -- "$1" "$2" "$rate" --set "cluster.network.bandwidth=$rate"
		# What Ethernet, IP and TCP leave of a line is a share of it, (1500 - 52) / (1500 + 14); scenarios say it for their own bandwidth.
		if grep -q 'transport:' "$out/$1-$2.yaml"; then
			set -- "$@" --set "cluster.host.transport=$(echo "$rate" | awk '{ match($0, /[A-Za-z]/)
				printf "%.6g%s", substr($0, 1, RSTART - 1) * 0.956, substr($0, RSTART) }')"
		fi
		run_systems "$@"
	done
}

for scenario in "$@"; do
	for size in $clusters; do
		profile "$scenario" "$size"
		run_bandwidths "$scenario" "$size"
	done
done
plots/psd-plot compare "$out/predicted.csv" "$out"/measured-*.csv --traces "$out/predicted.json" "$out/measured.json" -o "$out/compare.html"
echo "written to $out/: compare.html, compare.csv, compare.svg"
