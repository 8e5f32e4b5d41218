# Lines "IMPLEMENTATION SECONDS CPU_SECONDS [of each rank]..." to rows of bench_allreduce.sh. Variables: ranks,
# bandwidth_bps, bytes.

function median(values, n,    i, j, kept) {
	for (i = 2; i <= n; i++) {
		kept = values[i]
		for (j = i - 1; j >= 1 && values[j] > kept; j--)
			values[j + 1] = values[j]
		values[j + 1] = kept
	}
	return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
}

{
	sec = $2
	cpu_sec = 0
	for (i = 2; i <= NF; i += 2) {
		sec = $i < sec ? $i : sec
		cpu_sec += $(i + 1) / ranks
	}
	if (!($1 in n_of))
		order[++n_names] = $1
	n = ++n_of[$1]
	secs[$1, n] = sec
	cpu_secs[$1, n] = cpu_sec
}

END {
	for (k = 1; k <= n_names; k++) {
		name = order[k]
		n = n_of[name]
		for (i = 1; i <= n; i++) {
			values[i] = secs[name, i]
			cpu_values[i] = cpu_secs[name, i]
		}
		median_sec[name] = median(values, n)
		lowest_sec[name] = values[1]
		median_cpu_sec[name] = median(cpu_values, n)
		is_other = name !~ /^psd/
		if (is_other && (!best_sec || median_sec[name] < best_sec))
			best_sec = median_sec[name]
		if (name ~ /^gloo/ && (!gloo_cpu_sec || median_cpu_sec[name] < gloo_cpu_sec))
			gloo_cpu_sec = median_cpu_sec[name]
	}
	line_sec = bandwidth_bps ? 8 * bytes * 2 * (ranks - 1) / ranks / bandwidth_bps : 0
	most_sec = line_sec ? line_sec / 0.93 : best_sec
	for (k = 1; k <= n_names; k++) {
		name = order[k]
		printf "%d,%s,%s,%d,%.5f,%.5f,%.5f,%s", ranks, bandwidth_bps ? bandwidth_bps : "", name, n_of[name], \
			median_sec[name], lowest_sec[name], median_cpu_sec[name], \
			line_sec ? sprintf("%.4f", line_sec / median_sec[name]) : ""
		if (name == "psd")
			printf ",%s,%s,%s,%s\n", most_sec ? sprintf("%.5f", most_sec) : "", \
				most_sec ? (median_sec[name] <= most_sec ? "yes" : "no") : "", \
				gloo_cpu_sec ? sprintf("%.5f", gloo_cpu_sec) : "", \
				gloo_cpu_sec ? (median_cpu_sec[name] <= gloo_cpu_sec ? "yes" : "no") : ""
		else
			print ",,,"
	}
}
