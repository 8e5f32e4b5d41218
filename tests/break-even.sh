#!/bin/sh
# tests/break-even.sh BUILD: prints a table of scenarios/compression.yaml: for each compression and network, time of
# encoding and decoding, the gain over the ring at some bandwidths, and the bandwidth from which it gains less than
# 0.1 %, as in psd-sim ask. Bandwidths are tried in steps of 4 %, from 100 Mbit/s to 1 Tbit/s.
set -eu
export LC_ALL=C
build=$1
bandwidths=$(awk 'BEGIN {
	for (i = 0; i < 240; i++) printf "%.5gMbps, ", 100 * 10 ^ (i / 60)
	print "1000Gbps"
}')

# rows NAME OPTION...: rows of the table for one network.
rows() {
	name=$1
	shift
	"$build/psd-sim" --estimate --csv --quiet --set "sweep.bandwidth=[$bandwidths]" "$@" \
		scenarios/compression.yaml |
		awk -F , -v name="$name" '
			function rounded(x) { return sprintf(x < 100 ? "%.2g" : "%.3g", x) }
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{
				system_name = $at["system"]
				bandwidth = $at["bandwidth_bps"] / 1e9
				sec[system_name, bandwidth] = $at["iteration_sec"]
				work[system_name] = $at["other_work_sec"]
				if (!(system_name in known)) names[++n] = system_name
				known[system_name] = 1
				if (n == 1) list[++n_bandwidths] = bandwidth
			}
			# The gain at the bandwidth that was tried next to this one.
			function gain(system_name, wanted,    i, best) {
				best = 1
				for (i = 2; i <= n_bandwidths; i++)
					if (distance(list[i], wanted) < distance(list[best], wanted)) best = i
				best = sec[names[1], list[best]] / sec[system_name, list[best]]
				return sprintf("%+.0f %%", 100 * (best - 1))
			}
			function distance(a, b) { return a > b ? a / b : b / a }
			function end_of(system_name,    i) {
				for (i = n_bandwidths; i >= 1; i--)
					if (sec[names[1], list[i]] >= 1.001 * sec[system_name, list[i]]) break
				if (i == 0) return "never pays"
				return i == n_bandwidths ? "over 1 Tbit/s" : rounded(list[i + 1]) " Gbit/s"
			}
			END {
				for (s = 2; s <= n; s++)
					printf "| %s | %s | %.1f ms | %s | %s | %s | %s |\n", name, names[s],
						1000 * (work[names[s]] - work[names[1]]), gain(names[s], 10),
						gain(names[s], 25), gain(names[s], 100), end_of(names[s])
			}'
}

echo "| network | compression | encode, decode | 10 Gbit/s | 25 Gbit/s | 100 Gbit/s | pays no more from |"
echo "|---|---|---|---|---|---|---|"
rows ResNet-50
rows BERT-large --set model.graph=models/bert-large.yaml --set model.sequence=128 --set model.batch_per_worker=16
