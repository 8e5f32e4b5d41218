#!/bin/sh
# tests/onnx/exports.sh BUILD FOLDER: compares what BUILD/psd-sim reads from the networks of exports.py with PyTorch's
# own counts in FOLDER/counts.csv. All outputs of a network count. Parameters are equal if psd-sim has PyTorch's number
# or says it beside its own. They are said if the file lacks what PyTorch counts, and describe says so: biases before
# folded norms, rows of tables that no position reads, parameters that no output needs; up to 2 % of all. Exits with 1
# if fewer than 95 of 100 networks load, or another count differs.
set -u
export LC_ALL=C
build=$1
folder=$2
out=$folder/described
said=', up to [0-9]+ if the conv|^computed by the exp|^written-out tab|^biases of att|^not in'

sed 1d "$folder/counts.csv" | tr -d '\r' | while IFS=, read -r name exporter parameters flops outputs; do
	outputs=$(echo "$outputs" | sed "s/ /, /g")
	if timeout 120 "$build/psd-sim" describe --set "model.outputs=[$outputs]" "$folder/$name.onnx" \
		>"$out" 2>"$out.err"; then
		set -- "$(sed -n 's/.* layers, .* tensors, \([0-9,]*\) parameters.*/\1/p' "$out" | tr -d ,)" \
			"$(sed -n 's/^PyTorch counts \([0-9]*\) parameters/\1/p' "$out")" \
			"$(sed -n 's/^per sample: forward \([0-9.]*\) \([kMGT]*\)FLOP.*/\1 \2/p
				s/^products and .* alone: forward \([0-9.]*\) \([kMGT]*\)FLOP.*/\1 \2/p' "$out" |
				tail -n 1)" \
			"$(grep -cE "$said" "$out")"
		echo "$name,$exporter,$parameters,$flops,$1,$2,$3,$4"
	else
		echo "$name,$exporter,$parameters,$flops,,,,$(head -n 1 "$out.err" | tr ',' ';' | cut -c 1-400)"
	fi
done | awk -F, '
	BEGIN {
		factor[""] = 1; factor["k"] = 1e3; factor["M"] = 1e6; factor["G"] = 1e9; factor["T"] = 1e12
		printf "%-36s %-11s %11s %11s %7s\n", "network", "exporter", "parameters", "PyTorch", "FLOPs"
	}
	{
		n++
		if ($5 == "") {
			printf "%-36s %-11s refused: %s\n", $1, $2, $8
			next
		}
		split($7, forward, " ")
		ratio = $4 ? 100 * forward[1] * factor[forward[2]] / $4 - 100 : 0
		is_equal = $5 == $3 || $6 == $3
		differ = (($6 ? $6 : $5) - $3) / $3
		is_said = !is_equal && $8 && differ < 0.02 && differ > -0.02
		is_near = ratio >= -5 && ratio <= 5
		n_loaded++
		n_equal += is_equal
		n_said += is_said
		n_near += is_near
		printf "%-36s %-11s %11d %11d %+6.1f%%%s%s\n", $1, $2, $6 ? $6 : $5, $3, ratio,
			is_equal ? "" : is_said ? " said" : " other parameters", is_near ? "" : " other FLOPs"
	}
	END {
		printf "%d of %d load, %d with equal parameters, %d said, %d with FLOPs within 5 %%\n", \
			n_loaded, n, n_equal, n_said, n_near
		exit !(n_loaded >= 0.95 * n && n_equal + n_said == n_loaded && n_near == n_loaded)
	}'
