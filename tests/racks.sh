#!/bin/sh
# tests/racks.sh BUILD [SIZE]: every method on star, racks and fat tree, 8 to 64 nodes: the estimate and flow fidelity
# against message fidelity. SIZE: small (the default, 8 and 12 nodes) or all. Prints a row for each method and network
# with the largest and the median error in %, then each pair of methods that differ by over 5 % and change places. Fails
# if flow is off by more than 3 %, the estimate by more than 6 %, or a pair changes places. MODELS in the environment:
# names below scenarios/models/, alexnet if it is not set. The predictions stay in BUILD/racks/.
set -eu
export LC_ALL=C
build=$1 size=${2:-small}
work=$build/racks
mkdir -p "$work"

# scenario MODEL: the systems.
scenario() {
	echo "title: Racks"
	echo "model: {graph: $PWD/scenarios/models/$1.yaml, batch_per_worker: 32}"
	echo "compute: {device: p100}"
	echo "cluster: {nodes: 8, network: {bandwidth: 10Gbps, latency: 30us, topology: star}}"
	echo "most_events: 2000000000"
	echo "systems:"
	for sync in ring two-level halving-doubling recursive-doubling double-tree torus ps two-level-ps sfb hybrid; do
		echo "  - {name: $sync, sync: $sync}"
	done
}

# point TOPOLOGY NODES_PER_RACK RATIO NODES: appends rows of network, executor, method, nodes, seconds.
point() {
	for model in ${MODELS:-alexnet}; do
		set -- "$1" "$2" "$3" "$4" --set "cluster.network.topology=$1" --set "sweep.nodes=[$4]"
		if [ "$1" != star ]; then
			set -- "$@" --set "cluster.network.nodes_per_rack=$2" \
				--set "cluster.network.oversubscription=$3"
		fi
		scenario "$model" >"$work/$model.yaml"
		for how in --estimate '--set fidelity=flow' '--set fidelity=message'; do
			# shellcheck disable=SC2086 # two words
			(network="$1 $3:1" point=$model-$1-$2-$3 && shift 4 &&
				"$build/psd-sim" --csv $how "$@" "$work/$model.yaml" |
				awk -F, -v OFS=, -v network="$network" -v point="$point" \
					'NR > 1 { print network, point, $3, $2, $4, $7 }') >>"$work/rows.csv"
		done
	done
}

: >"$work/rows.csv"
if [ "$size" = all ]; then
	point star 1 1 '8, 16, 32, 64'
	for ratio in 2 4 16; do
		point racks 4 "$ratio" '8, 16, 64'
		point racks 16 "$ratio" '32, 64'
	done
	point racks 6 4 '16, 20'
	point fat-tree 8 2 '32, 64'
else
	point star 1 1 8
	point racks 4 4 '8, 12'
fi

awk -F, '
	{ sec[$2, $3, $4, $5] = $6; networks[$1]; methods[$4]; points[$2 SUBSEP $5] = $1 }
	function size_of(value) { return value < 0 ? -value : value }
	function turn(how, point, a, b,   x, y) {
		split(point, at, SUBSEP)
		x = sec[at[1], "sim-message", a, at[2]]; y = sec[at[1], "sim-message", b, at[2]]
		if (x > 1.05 * y && sec[at[1], how, a, at[2]] <= sec[at[1], how, b, at[2]]) {
			printf "%s, %s nodes: %s puts %s before %s\n", at[1], at[2], how, a, b
			status = 1
		}
	}
	function errors(how, network, method, bar,   point, n, list, i, j, swap, error) {
		for (point in points) {
			split(point, at, SUBSEP)
			if (points[point] != network || !((at[1], how, method, at[2]) in sec)) continue
			error = sec[at[1], how, method, at[2]] / sec[at[1], "sim-message", method, at[2]] - 1
			error = 100 * size_of(error)
			for (j = n++; j > 0 && list[j - 1] > error; j--) list[j] = list[j - 1]
			list[j] = error
		}
		if (list[n - 1] > bar) status = 1
		return sprintf("%7.2f %7.2f", list[n - 1], list[int(n / 2)])
	}
	END {
		printf "%-16s %-20s %15s %15s\n", "network", "system", "flow: most, mid", "estimate"
		for (network in networks)
			for (method in methods)
				printf "%-16s %-20s %s %s\n", network, method, errors("sim-flow", network, method, 3),
					errors("estimate", network, method, 6) | "sort"
		close("sort")
		for (point in points)
			for (a in methods)
				for (b in methods) {
					turn("sim-flow", point, a, b)
					turn("estimate", point, a, b)
				}
		exit status
	}' "$work/rows.csv"
