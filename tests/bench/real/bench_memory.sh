#!/bin/sh
# tests/bench/real/bench_memory.sh BUILD: the peak memory of the larger one of two workers, whatever the method, against
# four times the model (parameters, gradients, optimiser state, what arrives) plus activations plus 64 MB. Activations
# are counted twice: as the graph has them, each layer's output of a batch once, which judges; and as the compute
# backend says, scratch space included. CSV.
# shellcheck source=tests/bench/real/helper.sh
. tests/bench/real/helper.sh

# measure MODEL BATCH SYSTEM
measure() {
	graph=$(realpath "$(model_path "$1")")
	"$build/bench/in-cluster" --nodes 2 --report "$folder/report" -- \
		"$build/bench/exchange" cpu "$3" 3 "$folder/spans" \
		$here/train.yaml "model.graph=$graph" "model.batch_per_worker=$2" >"$folder/figures"
	peak=$(csv_field peak_memory_bytes <"$folder/report" | sort -n | tail -n 1)
	model_bytes=$(csv_field model_bytes <"$folder/figures")
	activation_bytes=$(csv_field activation_bytes <"$folder/figures")
	held_bytes=$(csv_field held_bytes <"$folder/figures")
	graph_most=$((4 * model_bytes + activation_bytes + 64000000))
	backend_most=$((4 * model_bytes + held_bytes + 64000000))
	echo "$1,$2,$3,$peak,$model_bytes,$activation_bytes,$held_bytes,$(quotient "$peak" "$model_bytes" 2),\
$graph_most,$(is_at_most "$peak" $graph_most),$backend_most,$(is_at_most "$peak" $backend_most)"
}

echo "model,batch,method,peak_bytes,model_bytes,activation_bytes,held_bytes,per_model_ratio,\
most_bytes,is_met,most_with_held_bytes,is_met_with_held"
for method in PS Ring Hybrid SFB; do measure mlp 64 $method; done
for method in PS Ring Hybrid; do measure alexnet 32 $method; done
for method in PS Ring Hybrid; do measure vgg11 8 $method; done
