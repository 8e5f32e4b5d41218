#!/bin/sh
# tests/bench/real/bench_fusion.sh BUILD: AlexNet on four workers behind 1 Gbit/s links: the gain of an all-reduce by
# fused buckets, sparse communication and a narrow wire, beside the hybrid and PyTorch DDP with its buckets of
# 25 MB, in the same kind of emulated cluster, taking turns. Figures are medians over the rounds. Bars: bytes and
# exposed communication of sparse communication at 85 % and of bf16 as parts of the dense ring's; the lazy ring's images
# per second as a part of DDP's. CSV.
# shellcheck source=tests/bench/real/helper.sh
. tests/bench/real/helper.sh

ROUNDS=3
ITERATIONS=3 # measured in each round, after two that warm up
WORKERS=4
BATCH=32

run_ddp() {
	torch_in="$build/bench/in-cluster --nodes $WORKERS --bandwidth 1Gbps --"
	run_torch alexnet $BATCH $ITERATIONS | median
	torch_in=
}

run_system() {
	run_psd alexnet $BATCH "$1" $WORKERS $((2 + ITERATIONS)) >"$folder/csv"
	for column in iteration_sec exposed_comm_sec tx_bytes_per_node; do
		csv_field $column <"$folder/csv" >>"$folder/$1.$column"
	done
}

middle() { median <"$folder/$1.$2"; }

# per_ring SYSTEM COLUMN
per_ring() { quotient "$(middle "$1" "$2")" "$(middle Ring "$2")"; }

# print_system SYSTEM MOST_PER_RING LEAST_PER_DDP: a bar may be empty
print_system() {
	sec=$(middle "$1" iteration_sec)
	sent_ratio=$(per_ring "$1" tx_bytes_per_node) exposed_ratio=$(per_ring "$1" exposed_comm_sec)
	ddp_ratio=$(quotient "$ddp_sec" "$sec")
	echo "psd-$1,$sec,$(quotient $((WORKERS * BATCH)) "$sec" 2)," \
		"$(middle "$1" exposed_comm_sec),$(middle "$1" tx_bytes_per_node)," \
		"$sent_ratio,$exposed_ratio,$2,$(is_at_most "$sent_ratio" "$2"),$(is_at_most "$exposed_ratio" "$2")," \
		"$ddp_ratio,$3,$(is_at_least "$ddp_ratio" "$3")" | sed 's/, /,/g'
}

has_torch || skip PyTorch
for _ in $(seq $ROUNDS); do
	if has_torch; then run_ddp >>"$folder/ddp"; fi
	for system in Ring Lazy Sparse bf16 Hybrid; do run_system $system; done
done

echo "implementation,iteration_sec,images_per_sec,exposed_comm_sec,tx_bytes_per_node,\
sent_per_ring,exposed_per_ring,most_per_ring,is_sent_within,is_exposed_within,\
per_ddp_ratio,least_per_ddp,is_as_fast"
ddp_sec=
if has_torch; then
	ddp_sec=$(median <"$folder/ddp")
	echo "torch-ddp,$ddp_sec,$(quotient $((WORKERS * BATCH)) "$ddp_sec" 2),,,,,,,,,,"
fi
print_system Ring "" ""
print_system Lazy "" 1.0
print_system Sparse 0.2 ""
print_system bf16 0.5 ""
print_system Hybrid "" ""
