# Reads a trace with trace.awk and finds, for each kind of operation, the seconds of an iteration in which a worker runs
# at least one: the mean over workers, the median over iterations. The first two iterations are left out if there are
# more, as in psd-run. Writes to the folder PSD_PLOT_WORK kinds.dat (kind, seconds if it occurs) and trace.dat, one line
# each: scenario, system, executor, nodes, iteration to draw, workers, bandwidth_bps.

of_iteration != "" && (pid in worker_of) {
	group = kind " " pid " " of_iteration + 0
	span_begin[group, ++n_spans[group]] = begin + 0
	span_end[group, n_spans[group]] = begin + duration
	has_kind[kind] = 1
	is_iteration[of_iteration + 0] = 1
}

# Sorts a group's spans by their begin; they are nearly sorted.
function sort_spans(group,    i, j, from, to)
{
	for (i = 2; i <= n_spans[group]; i++) {
		from = span_begin[group, i]
		to = span_end[group, i]
		for (j = i - 1; j >= 1 && span_begin[group, j] > from; j--) {
			span_begin[group, j + 1] = span_begin[group, j]
			span_end[group, j + 1] = span_end[group, j]
		}
		span_begin[group, j + 1] = from
		span_end[group, j + 1] = to
	}
}

# Seconds that a group's spans cover; an overlap counts once.
function covered_sec(group,    i, from, until, sum)
{
	sort_spans(group)
	until = span_begin[group, 1]
	for (i = 1; i <= n_spans[group]; i++) {
		from = span_begin[group, i] > until ? span_begin[group, i] : until
		if (span_end[group, i] > from) {
			sum += span_end[group, i] - from
			until = span_end[group, i]
		}
	}
	return sum / 1e6
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
	for (group in n_spans) {
		split(group, part, " ")
		total_sec[part[1], part[3]] += covered_sec(group)
	}
	for (kind = 1; kind <= n_categories; kind++)
		print category[kind], ((kind in has_kind) ? seconds_of(kind) : "") > (work "/kinds.dat")
	drawn = last_iteration < 2 ? last_iteration + 0 : 2
	print scenario "\n" system_name "\n" executor "\n" nodes "\n" drawn "\n" traced_workers "\n" traced_bps \
		> (work "/trace.dat")
}
