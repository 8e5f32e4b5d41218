#!/bin/sh
# tests/merge-profiles.sh PROFILE...: writes a profile with the median seconds of each layer, and the median rate, of
# profiles of one model. Comments and the order of layers are those of the first profile.
set -eu
export LC_ALL=C
[ $# -gt 0 ] || { echo "merge-profiles: no profiles given" >&2; exit 2; }
for profile in "$@"; do
	[ -s "$profile" ] || { echo "merge-profiles: $profile: missing or empty, must be a profile" >&2; exit 2; }
	shift
	# Without a folder in front awk takes the name a=b for a variable.
	case $profile in /*) set -- "$@" "$profile" ;; *) set -- "$@" "./$profile" ;; esac
done
awk -F , '
	function fail(words) { print "merge-profiles: " words >"/dev/stderr"; failed = 2; exit failed }
	function median(values, n, i, j, value, sorted) {
		for (i = 1; i <= n; i++) {
			value = values[i]
			for (j = i; j > 1 && sorted[j - 1] > value; j--) sorted[j] = sorted[j - 1]
			sorted[j] = value
		}
		return (sorted[int((n + 1) / 2)] + sorted[int(n / 2) + 1]) / 2
	}
	function median_of(layer, column, i, values) {
		for (i = 1; i <= n_files; i++) values[i] = secs[layer, column, i]
		return median(values, n_files)
	}
	FNR == 1 { n_files++ }
	/^# gemm_flops_per_sec:/ { rates[n_files] = substr($0, index($0, ":") + 1) + 0 }
	/^#/ || /^layer,/ { if (n_files == 1) head[++n_head] = $0; next }
	n_files == 1 { layers[++n_layers] = $1 }
	++n_rows[$1] != n_files { fail(FILENAME ": layer " $1 " is twice in it, or not in all profiles") }
	{ secs[$1, 2, n_files] = $2 + 0; secs[$1, 3, n_files] = $3 + 0 }
	END {
		if (failed) exit failed
		for (l = 1; l <= n_layers; l++)
			if (n_rows[layers[l]] != n_files) fail(FILENAME ": layer " layers[l] " is missing in it")
		for (h = 1; h <= n_head; h++) {
			if (head[h] ~ /^# gemm_flops_per_sec:/)
				head[h] = sprintf("# gemm_flops_per_sec: %.3fGFLOPS", median(rates, n_files))
			print head[h]
		}
		for (l = 1; l <= n_layers; l++)
			printf "%s,%.7f,%.7f\n", layers[l], median_of(layers[l], 2), median_of(layers[l], 3)
	}
' "$@"
