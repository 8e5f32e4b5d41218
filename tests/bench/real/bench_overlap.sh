#!/bin/sh
# tests/bench/real/bench_overlap.sh BUILD: how much of the communication hides behind the computation. AlexNet, parameter servers, two workers
# behind 1 Gbit/s links: wait-free against the longer one of computation alone (two workers at a time, nothing exchanged) and
# communication alone (the same exchange, nothing computed), with the sequential schedule beside it. The four take turns; figures
# are medians over the rounds. CSV.
# shellcheck source=tests/bench/real/helper.sh
. tests/bench/real/helper.sh

ROUNDS=3
ITERATIONS=6 # of each round, two of which warm up

in_cluster() { "$build/bench/in-cluster" --nodes 2 --bandwidth 1Gbps -- "$@"; }

compute_alone() {
	in_cluster "$build/psd-run" --csv --quiet --no-emulation --nodes 1 --iterations $ITERATIONS --system PS $here/train.yaml |
		csv_field iteration_sec | grep -v iteration_sec
}

exchange_alone() { in_cluster "$build/bench/exchange" none PS $ITERATIONS "$folder/spans" $here/train.yaml | csv_field iteration_sec; }

for _ in $(seq $ROUNDS); do
	compute_alone >>"$folder/compute"
	exchange_alone >>"$folder/exchange"
	run_psd alexnet 32 PS 2 $ITERATIONS | csv_field iteration_sec >>"$folder/wait-free"
	run_psd alexnet 32 "PS in sequence" 2 $ITERATIONS | csv_field iteration_sec >>"$folder/sequential"
done
for part in compute exchange wait-free sequential; do median <"$folder/$part"; done | tr '\n' ' ' | awk -v rounds=$ROUNDS '{
	longer_sec = $1 > $2 ? $1 : $2
	print "model,batch,bandwidth_bps,rounds,compute_sec,communication_sec,wait_free_sec,sequential_sec,per_longer_ratio,most_ratio,is_met"
	printf "alexnet,32,1000000000,%d,%.5f,%.5f,%.5f,%.5f,%.4f,1.1,%s\n", rounds, $1, $2, $3, $4, $3 / longer_sec,
		($3 <= 1.1 * longer_sec) ? "yes" : "no"
}'
