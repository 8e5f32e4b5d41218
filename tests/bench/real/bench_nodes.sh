#!/bin/sh
# tests/bench/real/bench_nodes.sh BUILD: an all-reduce of 64 MiB among four workers, behind links of 0.2 and 1 Gbit/s:
# in two levels on two nodes of two workers, which share memory, against a flat ring of the same four, and against a
# ring of four nodes of one. Link time is what a node sends over the link's rate, of which TCP's payload has 1448 of
# 1514 bytes. The systems take turns. CSV: medians over the rounds.
# shellcheck source=tests/bench/real/helper.sh
. tests/bench/real/helper.sh

ROUNDS=3
ITERATIONS=5 # in each round, two of which warm up
LEAST_SPEEDUP=1.3 # by two levels, over a flat ring on the same nodes, which sends 1.5 times as much

# run BITS_PER_SEC NODES WORKERS_PER_NODE SYSTEM: appends SECONDS and BYTES to a file of that name
run() {
	"$build/psd-run" --csv --quiet --nodes "$2" --iterations $ITERATIONS --set "cluster.workers_per_node=$3" \
		--system "$4" --set "cluster.network.bandwidth=${1}bps" $here/nodes.yaml >"$folder/csv"
	csv_field iteration_sec <"$folder/csv" >>"$folder/$2x$3-$4"
	csv_field tx_bytes_per_node <"$folder/csv" >"$folder/$2x$3-$4.bytes"
}

# tell BITS_PER_SEC NODES WORKERS_PER_NODE SYSTEM [FLAT_RING_SEC]
tell() {
	sec=$(median <"$folder/$2x$3-$4")
	speedup=$([ -z "${5:-}" ] || quotient "$5" "$sec")
	awk -v sec="$sec" -v bps="$1" -v nodes="$2" -v workers="$3" -v name="$4" \
		-v bytes="$(cat "$folder/$2x$3-$4.bytes")" -v speedup="$speedup" -v least=$LEAST_SPEEDUP \
		-v is_met="$(is_at_least "$speedup" $LEAST_SPEEDUP)" 'BEGIN {
			printf "%s,%d,%d,%s,%.4f,%d,%.4f,%s,%s,%s\n", bps, nodes, workers, name, sec, bytes,
				8 * bytes / (bps * 1448 / 1514), speedup, speedup == "" ? "" : least, is_met
		}'
}

echo "bandwidth_bps,nodes,workers_per_node,system,iteration_sec,tx_bytes_per_node,link_sec,\
speedup_ratio,least_ratio,is_met"
for bps in 200000000 1000000000; do
	rm -f "$folder"/*
	for _ in $(seq $ROUNDS); do
		run $bps 2 2 Two-level
		run $bps 2 2 Ring
		run $bps 4 1 Ring
	done
	tell $bps 4 1 Ring
	tell $bps 2 2 Ring
	tell $bps 2 2 Two-level "$(median <"$folder/2x2-Ring")"
done
