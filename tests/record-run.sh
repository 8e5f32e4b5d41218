#!/bin/sh
# tests/record-run.sh CALIBRATED RESULT PROFILE DRIFT RECORD: adds a run to a record in the form of
# traces/measured/README.md: its row of psd-run --csv, the layers' profile and the drift of the prediction in
# thousandths. A new record has a head first, with the constants of the calibrated scenario.
set -eu
export LC_ALL=C
[ $# -eq 5 ] || { echo "record-run: $# arguments given, must be 5" >&2; exit 2; }
calibrated=$1 result=$2 profile=$3 drift=$4 record=$5

# head_of FILE: prints the constants of a scenario: its jitter, and those of its cluster that all points share.
head_of() {
	sed -n 's/^# machine: /&/p
		s/^# origin: .*, \([0-9-]*\) [0-9:]* UTC$/# date: \1/p
		s/^  batch_per_worker: /# batch: /p
		s/^  jitter: /# compute.jitter: /p
		s/^  \(network\|local\|host\|machine\): {\(.*\)}$/\1, \2/p' "$1" |
		awk -F ', ' '
			/^#/ { print; next }
			{
				for (i = 2; i <= NF; i++)
					if ($1 != "network" || $i !~ /^(topology|bandwidth):/)
						print "# cluster." $1 "." $i
			}
		'
}

is_new=0
if [ ! -s "$record" ]; then
	is_new=1
	head_of "$calibrated" >"$record"
fi
awk -F , -v drift="$drift" -v is_new="$is_new" '
	# Columns of a result count from its end, because the title, in front, may have commas.
	function cell(column) { return $(NF - behind[column]) }
	FNR == NR && FNR == 1 { for (i = 1; i <= NF; i++) behind[$i] = NF - i; next }
	FNR == NR {
		point = sprintf("%s,%gGbps,%s", cell("nodes"), 1e-9 * cell("bandwidth_bps"), cell("system"))
		figures = sprintf("%.6g,%.6g,%g", cell("iteration_sec"), cell("compute_sec"), drift / 1000)
		next
	}
	/^# gemm_flops_per_sec:/ { gemm = $0; sub(/.*: */, "", gemm) }
	/^#/ || /^layer,/ { next }
	{ columns = columns "," $1 ".forward_us," $1 ".backward_us" }
	{ layers = layers sprintf(",%.1f,%.1f", 1e6 * $2, 1e6 * $3) }
	END {
		if (is_new) print "nodes,bandwidth,system,iteration_sec,compute_sec,drift_ratio,reason,gemm" columns
		print point "," figures ",," gemm layers
	}
' "$result" "$profile" >>"$record"
