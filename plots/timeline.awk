# Reads a trace with trace.awk and writes data and settings for timeline.gp to the folder PSD_PLOT_WORK: a band for each
# worker, with a row for each thread that has events. PSD_PLOT_SPAN_MS, if set, is the least width of the time axis, so
# that two timelines can share one.

# Reads 0-3,7 into wanted[], up to the largest number of workers that psd simulates.
function read_workers(list,    n, i, range, ends, first, last)
{
	n = split(list, range, ",")
	for (i = 1; i <= n; i++) {
		ends = split(range[i], bound, "-")
		first = bound[1] + 0
		last = bound[ends] + 0
		if (ends > 2 || last < first || last > 9999999 || last - first > 255) {
			print "'--workers' is '" list "', must be a list such as 0-3 or 0,2,7, " \
				"ranges rising and of 256 workers at most" > "/dev/stderr"
			has_failed = 1
			exit 2
		}
		for (; first <= last; first++)
			wanted[first] = 1
	}
}

BEGIN {
	iteration = ENVIRON["PSD_PLOT_ITERATION"]
	workers = ENVIRON["PSD_PLOT_WORKERS"]
	read_workers(workers == "" ? "0-3" : workers)
	most_boxes = 200000
}

{
	if (!(pid in worker_of) || !(worker_of[pid] in wanted))
		next
	if (iteration != "" && (of_iteration == "" || of_iteration + 0 != iteration + 0))
		next
	if (++n_boxes > most_boxes)
		complain("more than " most_boxes " events to draw, choose with --iteration and --workers")
	box_pid[n_boxes] = pid
	box_tid[n_boxes] = tid + 0
	box_begin[n_boxes] = begin / 1000
	box_end[n_boxes] = (begin + duration) / 1000
	box_kind[n_boxes] = kind
	box_name[n_boxes] = text_of($0, "name")
	has_row[pid, tid + 0] = 1
	if (n_boxes == 1 || box_begin[n_boxes] < first_ms)
		first_ms = box_begin[n_boxes]
	if (box_end[n_boxes] > last_ms)
		last_ms = box_end[n_boxes]
}

# Text on a box: the layer without its verb, which the colour shows.
function short_name(name)
{
	sub(/^[^ ]+ /, "", name)
	return name
}

END {
	if (has_failed)
		exit 2
	n_bands = 0
	missing = ""
	for (worker in wanted)
		if (worker in pid_of) {
			# Sorted by insertion: few bands, and awk's own order is arbitrary.
			for (i = ++n_bands; i > 1 && band[i - 1] > worker + 0; i--)
				band[i] = band[i - 1]
			band[i] = worker + 0
		} else if (missing == "" || worker + 0 < missing) {
			missing = worker + 0
		}
	if (workers != "" && missing != "")
		finish_with(FILENAME ": there is no worker " missing " in it")
	if (n_boxes == 0 && iteration != "" && iteration + 0 > last_iteration)
		finish_with(FILENAME ": '--iteration' is " iteration ", the last one in the trace is " \
			last_iteration + 0)
	if (n_boxes == 0)
		finish_with(FILENAME ": the chosen workers and iteration have no event")

	settings = work "/settings.gp"
	# Rows count from the top; half a row or more lies between two bands.
	y = 0
	tics = ""
	for (i = 1; i <= n_bands; i++) {
		pid = pid_of[band[i]]
		top = y
		for (tid = 1; tid <= last_tid; tid++)
			if ((pid, tid) in has_row) {
				row_y[pid, tid] = ++y - 0.5
				tics = tics (tics == "" ? "" : ", ") quoted(thread_name[tid]) " " (y - 0.5)
			}
		if (y > top) {
			print "set label " i " " quoted(process_name[pid]) " at graph 0, first " (top + y) / 2 \
				" offset character -13.5,0 center rotate by 90 noenhanced" > settings
			print "set object " i " rectangle from graph 0, first " top " to graph 1, first " y \
				" behind fillcolor rgb '#f6f6f6' fillstyle solid noborder" > settings
			# the name of a worker is as long as three rows are high
			gap = y - top < 2.5 ? 3 - (y - top) : 0.5
			y += gap
		}
	}
	n_rows = y - gap
	span_ms = last_ms - first_ms
	if (span_ms <= 0)
		span_ms = 0.001
	if (ENVIRON["PSD_PLOT_SPAN_MS"] + 0 > span_ms)
		span_ms = ENVIRON["PSD_PLOT_SPAN_MS"] + 0

	# Neighbours are told apart by a gap at the end of each box, and the shortest box is still wide enough to be
	# seen. A box carries its name only when the name fits into it, and once where several lie on each other.
	gap_ms = span_ms / 1200
	characters = 170
	for (i = 1; i <= n_boxes; i++) {
		y = row_y[box_pid[i], box_tid[i]]
		kind = box_kind[i]
		begin = box_begin[i] - (iteration == "" ? 0 : first_ms)
		end = box_end[i] - (iteration == "" ? 0 : first_ms)
		end = end - begin > 2 * gap_ms ? end - gap_ms : begin + gap_ms
		printf "%.6f %.6f %.6f %.6f %.3f %.3f\n", (begin + end) / 2, y, begin, end, y - 0.4, y + 0.4 \
			> (work "/boxes-" kind ".dat")
		has_kind[kind] = 1
		name = short_name(box_name[i])
		if (name == "" || (end - begin) / span_ms * characters < length(name) + 1)
			continue
		gsub(/["\\]/, "'", name)
		line = sprintf("%.6f %.3f \"%s\" %d", (begin + end) / 2, y, name, kind)
		if (!(line in is_named))
			print line > (work "/names.dat")
		is_named[line] = 1
		has_names = 1
	}
	for (kind = 1; kind <= n_categories; kind++)
		if (kind in has_kind)
			kinds = kinds " " kind
	for (kind = 1; kind <= n_categories; kind++)
		categories = categories category[kind] " "
	printf "kinds = '%s'\ncategories = %s\n", kinds, quoted(categories) > settings
	printf "has_names = %d\nn_rows = %.1f\n", has_names + 0, n_rows > settings
	printf "first_ms = %.6f\n", (iteration == "" ? first_ms : 0) > settings
	printf "last_ms = %.6f\n", (iteration == "" ? last_ms : span_ms) > settings
	print "set ytics (" tics ")" > settings
	title = title_at(scenario) ": " system_name
	if (iteration != "")
		title = title ", iteration " iteration
	if (executor != "")
		title = title " (" executor ")"
	print_title(title, settings)
	# otherwise a short send and a long receive look like two speeds
	is_drawn = (category_number["send"] in has_kind) || (category_number["receive"] in has_kind)
	note = executor !~ /^real/ || !is_drawn ? "" : \
		"send: until the network stack has taken the last byte; receive: from the first byte to the last"
	print "note = " quoted(note) > settings
}
