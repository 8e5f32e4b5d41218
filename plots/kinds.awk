# Of the trace that trace.awk reads: the seconds that a worker spends on each kind of operation in an iteration, the mean over the workers, and of the
# iterations the median; where there are more than two, the first two are left out, as psd-run does. Writes into the folder PSD_PLOT_WORK
# kinds.dat (kind, seconds where it occurs) and trace.dat, a line each: scenario, system, executor, nodes, iteration to be drawn.

of_iteration != "" && (pid in worker_of) {
	total_sec[kind, of_iteration + 0] += duration / 1e6
	has_kind[kind] = 1
	is_iteration[of_iteration + 0] = 1
}

function seconds_of(kind,    i, n, sec, first)
{
	first = last_iteration >= 2 ? 2 : 0
	for (i in is_iteration)
		if (i + 0 >= first)
			sec[++n] = total_sec[kind, i] / n_workers
	return sprintf("%.9g", median(sec, n))
}

END {
	if (has_failed)
		exit 2
	for (i in is_iteration)
		n_iterations++
	if (n_iterations == 0)
		finish_with(FILENAME ": no event of a worker names its iteration")
	for (kind = 1; kind <= n_categories; kind++)
		print category[kind], ((kind in has_kind) ? seconds_of(kind) : "") > (work "/kinds.dat")
	printf "%s\n%s\n%s\n%s\n%d\n", scenario, system_name, executor, nodes, (last_iteration < 2 ? last_iteration : 2) > (work "/trace.dat")
}
