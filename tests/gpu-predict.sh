#!/bin/sh
# tests/gpu-predict.sh CSV [FOLDER]: predicts, with the psd-sim of FOLDER, build/ or PATH, the runs that
# tests/gpu-check.sh left beside CSV, by the calibration there, and needs no GPU. It prints the origin of the
# calibration, then the errors: "median error 3.1 %, worst 5.2 %". It ends with status 1 if the median is above 7 %, and
# with status 2 and one line if nothing can be predicted.
set -u
export LC_ALL=C
kept=${1%.csv}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

refuse() {
	echo "gpu-predict: $1" >&2
	exit 2
}

sim=
for program in "${2:-build}/psd-sim" build/psd-sim psd-sim; do
	if [ -z "$sim" ] && "$program" --version >/dev/null 2>&1; then sim=$program; fi
done
[ -n "$sim" ] || refuse "no psd-sim"
[ -f "$kept-calibrated.yaml" ] || refuse "no calibration $kept-calibrated.yaml"
[ -f "$kept-measured.csv" ] || refuse "no runs $kept-measured.csv"

# The calibrated scenario names its network in a folder of the machine with the GPU.
graph=$(sed -n 's/^ *graph: "\(.*\)"$/\1/p' "$kept-calibrated.yaml")
"$sim" --csv --quiet --set "model.graph=$PWD/scenarios/models/${graph##*/}" "$kept-calibrated.yaml" \
	>"$work/predicted" 2>"$work/err" || refuse "$(tail -n 1 "$work/err")"
head -n 2 "$kept-calibrated.yaml" | cut -c 3-
awk -F , '
	FNR == 1 { file++; for (i = 1; i <= NF; i++) at[$i] = i; next }
	file == 1 { predicted[$at["system"]] = $at["iteration_sec"]; next }
	{ off = (predicted[$at["system"]] / $at["iteration_sec"] - 1) * 100; print (off < 0 ? -off : off) }
' "$work/predicted" "$kept-measured.csv" | sort -g | awk '
	{ off[NR] = $1 }
	END {
		if (!NR) exit 1
		median = (off[int((NR + 1) / 2)] + off[int(NR / 2) + 1]) / 2
		printf "median error %.3g %%, worst %.3g %%\n", median, off[NR]
		exit median > 7
	}'
