#!/bin/sh
# tests/compare.sh BUILD [SCENARIO...]: predicts and executes scenarios/execute/SCENARIO.yaml for each of its systems on NODES nodes, and prints
# both with the error. Both read the same file, a copy in BUILD/compare/ whose `compute` is a profile that was measured just before, with as
# many workers busy as the run has: where they are more than the machine's cores, each computes so much slower. Everything else,
# what hosts cost in particular, is as the scenario says. Measured is the run of ROUNDS whose iteration is the median, and the spread of all:
# largest to smallest, relative to it. The compute times beside
# them tell how well the profile met the run; a layer whose gradient is rebuilt from factors computes less of it than the profile, and
# more where it is rebuilt. Written to BUILD/compare/compare.csv, too.
set -eu
export LC_ALL=C
build=$1
shift
[ $# -gt 0 ] || set -- alexnet mlp
rounds=${ROUNDS:-3}
clusters=${NODES:-2 4}
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

# predict SCENARIO NODES SYSTEM COLUMN [OPTION...]
predict() {
	file=$out/$1-$2.yaml nodes=$2 system=$3 column=$4
	shift 4
	"$build/psd-sim" --csv --system "$system" --set "sweep.nodes=$nodes" "$@" "$file" >"$out/predicted.csv"
	csv_field "$column" <"$out/predicted.csv"
}

# compare SCENARIO NODES SYSTEM: a row
compare() {
	: >"$out/measured"
	for _ in $(seq "$rounds"); do
		"$build/psd-run" --csv --quiet --nodes "$2" --iterations "$iterations" --system "$3" "$out/$1-$2.yaml" >"$out/measured.csv"
		echo "$(csv_field iteration_sec <"$out/measured.csv") $(csv_field compute_sec <"$out/measured.csv")" >>"$out/measured"
	done
	sort -g -o "$out/measured" "$out/measured"
	awk -v name="$1,$3,$2" -v predicted="$(predict "$1" "$2" "$3" iteration_sec)" -v profiled="$(predict "$1" "$2" "$3" compute_sec)" '
		{ sec[NR] = $1; compute_sec[NR] = $2 }
		END {
			middle = int((NR + 1) / 2)
			printf "%s,%.5f,%.5f,%.4f,%.4f,%.5f,%.5f\n", name, predicted, sec[middle], (sec[NR] - sec[1]) / sec[middle],
				predicted / sec[middle] - 1, profiled, compute_sec[middle]
		}' "$out/measured"
	rm -f "$out/measured" "$out/measured.csv" "$out/predicted.csv"
}

rows() {
	echo "model,system,workers,predicted_sec,measured_sec,spread_ratio,error_ratio,profile_compute_sec,measured_compute_sec"
	for scenario in "$@"; do
		for nodes in $clusters; do
			profile "$scenario" "$nodes"
			for system in PS Hybrid Ring; do
				echo "compare: $scenario, $system, $nodes workers" >&2
				compare "$scenario" "$nodes" "$system"
			done
		done
	done
}

rows "$@" >"$out/compare.csv"
awk -F , 'NR == 1 { printf "%-10s %-8s %7s %11s %11s %7s %7s  | %9s %9s\n", "model", "system", "workers", "predicted s", "measured s",
	"spread", "error", "profile s", "compute s"; next }
	{ printf "%-10s %-8s %7d %11.4f %11.4f %5.1f %% %5.1f %%  | %9.4f %9.4f\n", $1, $2, $3, $4, $5, 100 * $6, 100 * $7, $8, $9 }' "$out/compare.csv"
