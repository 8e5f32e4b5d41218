#!/bin/sh
# tests/published.sh BUILD: predicts every throughput of scenarios/published/one-gpu/single-gpu.csv by the table of
# devices alone, and prints the errors. Each model becomes a scenario in BUILD/published/ with a system for each row,
# which `psd-sim FILE` compares with its published value. All rows are in BUILD/published/errors.csv.
set -eu
export LC_ALL=C
build=$1
rows=scenarios/published/one-gpu/single-gpu.csv
out=$build/published
rm -rf "$out"
mkdir -p "$out"

# Writes a scenario and its published values for each model and length of sequence.
awk -F , -v out="$out" -v models="$PWD/scenarios/models" '
	/^#/ { next }
	$1 == "model" { next }
	{
		name = $1 ($2 == "" ? "" : "-" $2)
		scenario = out "/" name ".yaml"; values = out "/" name ".csv"
		if (!(name in seen)) {
			seen[name] = 1
			printf "title: %s, one GPU\nmodel: {graph: %s/%s.yaml, batch_per_worker: 1%s}\n",
				name, models, $1, ($2 == "" ? "" : ", sequence: " $2) >scenario
			print "compute: {device: h100}" >scenario
			print "cluster: {nodes: 1, network: {bandwidth: 10Gbps, latency: 20us}}" >scenario
			printf "published: %s.csv\nsystems:\n", name >scenario
			print "system,workers,images_per_sec,speedup,use,source" >values
		}
		system_name = $3 " " $4 " " $5
		printf "  - {name: %s, sync: ring, model: {batch_per_worker: %s, precision: %s}, ",
			system_name, $5, $4 >scenario
		printf "compute: {device: %s}}\n", $3 >scenario
		printf "%s,1,%s,,check,%s\n", system_name, $6, $11 >values
	}' "$rows"

for scenario in "$out"/*.yaml; do
	"$build/psd-sim" --csv --quiet "$scenario" |
		awk -F , -v name="$(basename "$scenario" .yaml)" '
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{
				sub(/^"[^"]*"/, "title") # a title has a comma, and is quoted: the system follows it
				$0 = $0
				print name "," $at["system"] "," $at["images_per_sec"]
			}'
done >"$out/predicted"

awk -F , '
	function magnitude(x) { return x < 0 ? -x : x }
	function add(group, error, best) {
		n[group]++; sum[group] += magnitude(error); bias[group] += error; of_best[group] += magnitude(best)
		if (magnitude(error) > magnitude(worst[group])) worst[group] = error
	}
	function tell(group, words) {
		if (n[group])
			printf "%-38s %4d rows, mean error %4.1f %%, worst %+5.1f %%, bias %+5.1f %%; %s %4.1f %%\n",
				words, n[group], 100 * sum[group] / n[group], 100 * worst[group],
				100 * bias[group] / n[group], "to the best run", 100 * of_best[group] / n[group]
	}
	FNR == NR { predicted[$1 "," $2] = $3; next }
	/^#/ { next }
	$1 == "model" {
		print "model,sequence,device,precision,batch,predicted,published,lowest,highest,error_ratio,use" >errors
		printf "%-14s %8s %-10s %-5s %5s %10s %10s %19s %8s\n", "model", "sequence", "device", "", "batch",
			"predicted", "published", "lowest to highest", "error"
		next
	}
	{
		rate = predicted[$1 ($2 == "" ? "" : "-" $2) "," $3 " " $4 " " $5]
		if (rate == "") { print "published: " $0 ": no prediction" | "cat >&2"; exit 1 }
		error = rate / $6 - 1
		printf "%-14s %8s %-10s %-5s %5d %10.4g %10.4g %9.4g %9.4g %+7.1f %%%s\n",
			$1, $2, $3, $4, $5, rate, $6, $7, $8, 100 * error, $10 == "target" ? "" : " " $10
		print $1 "," $2 "," $3 "," $4 "," $5 "," rate "," $6 "," $7 "," $8 "," error "," $10 >errors
		if ($10 != "target") next
		kind = $2 == "" ? "convolutions" : "transformers"
		add(kind, error, rate / $8 - 1)
		group = kind SUBSEP $3 SUBSEP $4
		if (!(group in known)) { known[group] = 1; groups[++n_groups] = group }
		add(group, error, rate / $8 - 1)
	}
	END {
		print ""
		for (i = 1; i <= n_groups; i++) {
			split(groups[i], part, SUBSEP)
			tell(groups[i], part[1] ", " part[2] ", " part[3])
		}
		tell("convolutions", "convolutional networks")
		tell("transformers", "transformers")
	}' errors="$out/errors.csv" "$out/predicted" "$rows"
