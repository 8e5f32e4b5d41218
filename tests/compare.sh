#!/bin/sh
# tests/compare.sh BUILD [SCENARIO...]: predicts and executes scenarios/execute/SCENARIO.yaml for each of its systems on 2 and 4 nodes, and prints
# both with the error. Both read the same file, a copy in BUILD/compare/ whose `compute` is a profile that was measured just before, with as
# many workers busy as the run has: where they are more than the machine's cores, each computes so much slower. Everything else,
# what hosts cost in particular, is as the scenario says. Measured are medians over ROUNDS runs, and their spread: largest to
# smallest, relative to the median. Written to BUILD/compare/compare.csv, too.
set -eu
export LC_ALL=C
build=$1
shift
[ $# -gt 0 ] || set -- alexnet mlp
rounds=${ROUNDS:-3}
iterations=${ITERATIONS:-6} # of each run, two of which warm up
out=$build/compare
mkdir -p "$out"

# csv_field COLUMN: of the CSV on standard input, one line for each row
csv_field() { awk -F , -v column="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i; next } { print $at }'; }

# field SCENARIO KEY: of the `model` line
field() { sed -n "s/^model:.*$2: *\([^,}]*\).*/\1/p" "scenarios/execute/$1.yaml"; }

# profile SCENARIO NODES: the one of a worker among as many that compute at a time
profile() {
	model=scenarios/execute/$(field "$1" graph)
	for worker in $(seq "$2"); do
		"$build/bench/cpu" --profile "$model" "$(field "$1" batch_per_worker)" >"$out/$1-$2-$worker.csv" &
	done
	wait
	mv "$out/$1-$2-1.csv" "$out/$1-$2-profile.csv"
	rm -f "$out/$1-$2"-[0-9]*.csv
	sed -e "s|^model: {graph: \([^,]*\)|model: {graph: $(realpath "$model")|" \
		-e "s|^compute:.*|compute: {profile: $1-$2-profile.csv}|" "scenarios/execute/$1.yaml" >"$out/$1-$2.yaml"
}

# compare SCENARIO NODES SYSTEM: a row
compare() {
	"$build/psd-sim" --csv --system "$3" --set "sweep.nodes=$2" "$out/$1-$2.yaml" >"$out/predicted.csv"
	: >"$out/measured.csv"
	for _ in $(seq "$rounds"); do
		"$build/psd-run" --csv --quiet --nodes "$2" --iterations "$iterations" --system "$3" "$out/$1-$2.yaml" >>"$out/measured.csv"
	done
	csv_field iteration_sec <"$out/measured.csv" | grep -v iteration_sec | sort -g >"$out/measured"
	awk -v name="$1,$3,$2" -v predicted="$(csv_field iteration_sec <"$out/predicted.csv")" \
		-v profiled="$(csv_field compute_sec <"$out/predicted.csv")" -v computed="$(csv_field compute_sec <"$out/measured.csv" |
			grep -v compute_sec | sort -g | sed -n "$(((rounds + 1) / 2))p")" '
		{ sec[NR] = $1 }
		END {
			middle = sec[int((NR + 1) / 2)]
			printf "%s,%.5f,%.5f,%.4f,%.5f,%.5f,%.4f\n", name, predicted, middle, (sec[NR] - sec[1]) / middle, profiled, computed,
				predicted / middle - 1
		}' "$out/measured"
	rm -f "$out/measured" "$out/measured.csv" "$out/predicted.csv"
}

rows() {
	echo "model,system,workers,predicted_sec,measured_sec,spread_ratio,profile_compute_sec,measured_compute_sec,error_ratio"
	for scenario in "$@"; do
		for nodes in 2 4; do
			profile "$scenario" "$nodes"
			for system in PS Hybrid Ring; do
				echo "compare: $scenario, $system, $nodes workers" >&2
				compare "$scenario" "$nodes" "$system"
			done
		done
	done
}

rows "$@" >"$out/compare.csv"
awk -F , '{ printf "%-10s %-8s %8s %14s %13s %13s %20s %21s %12s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9 }' "$out/compare.csv"
