#!/bin/sh
# tests/bench/real/bench_train.sh BUILD: images per second of one worker on one thread, psd-run against PyTorch with its
# heap kept. They take turns; figures are medians over the rounds of each round's median. CSV.
# shellcheck source=tests/bench/real/helper.sh
. tests/bench/real/helper.sh

ROUNDS=3
ITERATIONS=4 # measured in each round, after two that warm up

# print_row MODEL BATCH IMPLEMENTATION SECONDS [RATIO BAR]
print_row() {
	echo "$1,$2,$3,$ROUNDS,$4,$(quotient "$2" "$4" 2),${5:-},${6:-},$(is_at_least "${5:-}" "${6:-}")"
}

# measure MODEL BATCH BAR; without a bar the row is for comparison
measure() {
	: >"$folder/psd"
	: >"$folder/torch"
	for _ in $(seq $ROUNDS); do
		if has_torch; then run_torch "$1" "$2" $ITERATIONS | median >>"$folder/torch"; fi
		run_psd "$1" "$2" PS 1 $((2 + ITERATIONS)) --no-emulation | csv_field iteration_sec >>"$folder/psd"
	done
	psd_sec=$(median <"$folder/psd")
	torch_sec=$(median <"$folder/torch")
	ratio=$(quotient "$torch_sec" "$psd_sec")
	if has_torch; then print_row "$1" "$2" torch "$torch_sec"; fi
	print_row "$1" "$2" psd "$psd_sec" "$ratio" "$3"
}

has_torch || skip PyTorch
echo "model,batch,implementation,rounds,iteration_sec,images_per_sec,per_torch_ratio,least_ratio,is_met"
measure alexnet 32 1.1
measure alexnet-without-lrn 32 ""
measure vgg11 8 1.0
measure cifar10-quick 100 1.0
measure mlp 64 ""
