# Reads a trace of psd-sim or psd-run, Chrome trace-event JSON with one event on each line, and writes, into the folder PSD_PLOT_WORK, the data and
# settings that timeline.gp loads: a band for each worker, in it a row for each thread that did something. Reads no other layout of JSON.

function complain(what)
{
	print FILENAME ":" FNR ": " what > "/dev/stderr"
	has_failed = 1
	exit 2
}

function quoted(text)
{
	gsub(/'/, "''", text)
	return "'" text "'"
}

# The text of "key":"..." in json, escapes undone; "" when there is none.
function text_of(json, key,    text)
{
	if (!match(json, "\"" key "\":\"([^\"\\\\]|\\\\.)*\""))
		return ""
	text = substr(json, RSTART + length(key) + 4, RLENGTH - length(key) - 5)
	gsub(/\\u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]|\\[bfnrt]/, " ", text)
	gsub(/\\\\/, "\001", text)
	gsub(/\\/, "", text)
	gsub(/\001/, "\\", text)
	return text
}

# The number of "key":..., "" when there is none.
function number_of(json, key,    text)
{
	if (!match(json, "\"" key "\":-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?[,}]"))
		return ""
	text = substr(json, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
	return text
}

# 0-3,7 into wanted[]; the largest worker that psd simulates bounds it.
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
	work = ENVIRON["PSD_PLOT_WORK"]
	iteration = ENVIRON["PSD_PLOT_ITERATION"]
	workers = ENVIRON["PSD_PLOT_WORKERS"]
	read_workers(workers == "" ? "0-3" : workers)
	most_boxes = 200000
	n_categories = split("forward backward factor copy send receive collective reduce barrier apply", category, " ")
	for (i = 1; i <= n_categories; i++)
		category_number[category[i]] = i
}

{ sub(/\r$/, "") }

is_closed && $0 != "" { complain("there is text after the closing ']}'") }

NR == 1 {
	if ($0 !~ /^\{.*"traceEvents":\[$/)
		complain("not a trace of psd-sim or psd-run, the first line must end in '\"traceEvents\":['")
	scenario = text_of($0, "scenario")
	system_name = text_of($0, "system")
	executor = text_of($0, "executor")
	next
}

$0 == "]}" { is_closed = 1; next }
$0 == "" { next }

!/^\{.*\},?$/ { complain("not a trace event, must be one JSON object on a line") }

{
	phase = text_of($0, "ph")
	pid = number_of($0, "pid")
	if (phase == "" || pid == "")
		complain("not a trace event, it has no 'ph' or no 'pid'")
	tid = number_of($0, "tid")
	arguments = match($0, /"args":\{/) ? substr($0, RSTART) : ""
}

phase == "M" {
	name = text_of(arguments, "name")
	if ($0 ~ /"name":"process_name"/) {
		process_name[pid] = name
		if (name ~ /^worker [0-9]+$/) {
			pid_of[substr(name, 8) + 0] = pid
			worker_of[pid] = substr(name, 8) + 0
		}
	} else if ($0 ~ /"name":"thread_name"/) {
		if (tid == "")
			complain("'thread_name' has no 'tid'")
		thread_name[tid] = name
		if (tid + 0 > last_tid)
			last_tid = tid + 0
	}
	next
}

phase == "X" {
	begin = number_of($0, "ts")
	duration = number_of($0, "dur")
	kind = text_of($0, "cat")
	if (begin == "" || duration == "" || tid == "")
		complain("an event has no number for 'ts', 'dur' or 'tid'")
	if (duration + 0 < 0)
		complain("'dur' is " duration ", must be 0 or more")
	if (!(kind in category_number))
		complain("'cat' is '" kind "', must be one of forward, backward, copy, send, receive, reduce, factor, collective, barrier, apply")
	of_iteration = number_of(arguments, "iteration")
	if (of_iteration + 0 > last_iteration)
		last_iteration = of_iteration + 0
	n_events++
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
	box_kind[n_boxes] = category_number[kind]
	box_name[n_boxes] = text_of($0, "name")
	has_row[pid, tid + 0] = 1
	if (n_boxes == 1 || box_begin[n_boxes] < first_ms)
		first_ms = box_begin[n_boxes]
	if (box_end[n_boxes] > last_ms)
		last_ms = box_end[n_boxes]
}

function finish_with(what)
{
	print FILENAME ": " what > "/dev/stderr"
	exit 2
}

# What a box of this kind says about itself: the layer, without the verb that its colour shows.
function short_name(name)
{
	sub(/^(forward|backward|rebuild|copy out|copy in|push|pull|factors|all-reduce|broadcast|matrix|ring|reduce|apply) /, "", name)
	return name
}

END {
	if (has_failed)
		exit 2
	if (NR == 0)
		finish_with("is empty")
	if (!is_closed)
		finish_with("the trace is cut off, the last line must be ']}'")
	if (n_events == 0)
		finish_with("there is no event in it")
	n_bands = 0
	for (worker in wanted)
		if (worker in pid_of) {
			# Sorted by insertion: few bands, and awk's own order is arbitrary.
			for (i = ++n_bands; i > 1 && band[i - 1] > worker + 0; i--)
				band[i] = band[i - 1]
			band[i] = worker + 0
		} else if (workers != "") {
			finish_with("there is no worker " worker " in it")
		}
	if (n_boxes == 0 && iteration != "" && iteration + 0 > last_iteration)
		finish_with("'--iteration' is " iteration ", the last one in the trace is " last_iteration + 0)
	if (n_boxes == 0)
		finish_with("the chosen workers and iteration have no event")

	settings = work "/settings.gp"
	# Rows count from the top; half a row lies between two bands.
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
			y += 0.5
		}
	}
	n_rows = y - 0.5
	span_ms = last_ms - first_ms
	if (span_ms <= 0)
		span_ms = 0.001

	# Neighbours are told apart by a gap at the end of each box, and the shortest box is still wide enough to be seen. A box carries its
	# name only when the name fits into it, and once where several lie on each other.
	gap_ms = span_ms / 1200
	characters = 170
	for (i = 1; i <= n_boxes; i++) {
		y = row_y[box_pid[i], box_tid[i]]
		kind = box_kind[i]
		begin = box_begin[i] - (iteration == "" ? 0 : first_ms)
		end = box_end[i] - (iteration == "" ? 0 : first_ms)
		end = end - begin > 2 * gap_ms ? end - gap_ms : begin + gap_ms
		printf "%.6f %.6f %.6f %.6f %.3f %.3f\n", (begin + end) / 2, y, begin, end, y - 0.4, y + 0.4 > (work "/boxes-" kind ".dat")
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
	printf "kinds = '%s'\ncategories = '", kinds > settings
	for (kind = 1; kind <= n_categories; kind++)
		printf "%s ", category[kind] > settings
	printf "'\nhas_names = %d\nn_rows = %.1f\n", has_names + 0, n_rows > settings
	printf "first_ms = %.6f\nlast_ms = %.6f\n", iteration == "" ? first_ms : 0, iteration == "" ? last_ms : span_ms > settings
	print "set ytics (" tics ")" > settings
	title = scenario ": " system_name
	if (iteration != "")
		title = title ", iteration " iteration
	if (executor != "")
		title = title " (" executor ")"
	print "plot_title = " quoted(title) > settings
}
