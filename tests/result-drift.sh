#!/bin/sh
# tests/result-drift.sh BEFORE AFTER: prints by how much the iteration of the second result is longer or shorter than
# that of the first one, in whole thousandths of the first one. Each file has one row under a head, as from psd-sim
# --csv.
set -eu
export LC_ALL=C
[ $# -eq 2 ] || { echo "result-drift: $# results given, must be 2" >&2; exit 2; }
# iteration RESULT: prints its seconds
iteration() {
	awk -F , -v result="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == "iteration_sec") { is_there = 1; behind = NF - i } }
		NR > 1 { n++; sec = $(NF - behind) } # the title, in front of it, may have commas
		END {
			if (is_there && n == 1 && sec > 0) { print sec; exit }
			print "result-drift: " result ": must be one row with an iteration_sec above 0" >"/dev/stderr"
			exit 2
		}
	' "$1"
}
before=$(iteration "$1")
after=$(iteration "$2")
echo "$before $after" | awk '{ ratio = $2 / $1 - 1; printf "%.0f\n", 1000 * (ratio < 0 ? -ratio : ratio) }'
