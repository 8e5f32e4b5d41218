# Reads and checks a trace of psd-sim or psd-run: Chrome trace-event JSON with one event per line. The rules of the next
# reader see only spans, with pid, tid, begin and duration (microseconds), kind (number of category[]), of_iteration and
# arguments set. Reads no other layout of JSON.

# Text of "key":"..." in json without escapes; "" if the key is missing.
function text_of(json, key,    text)
{
	if (!match(json, "\"" key "\":\"([^\"\\\\]|\\\\.)*\""))
		return ""
	text = substr(json, RSTART + length(key) + 4, RLENGTH - length(key) - 5)
	gsub(/\\u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]|\\[bfnrt]/, " ", text)
	gsub(/\\\\/, "\001", text)
	gsub(/\\/, "", text)
	gsub(/\001/, "\\", text)
	return printable(text)
}

# Number of "key":...; "" if the key is missing.
function number_of(json, key,    text)
{
	if (!match(json, "\"" key "\":-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?[,}]"))
		return ""
	text = substr(json, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
	return text
}

is_closed && $0 != "" { complain("there is text after the closing ']}'") }

NR == 1 {
	if ($0 !~ /^\{.*"traceEvents":\[$/)
		complain("not a trace of psd-sim or psd-run, the first line must end in '\"traceEvents\":['")
	scenario = text_of($0, "scenario")
	system_name = text_of($0, "system")
	executor = text_of($0, "executor")
	nodes = number_of($0, "nodes")
	traced_workers = number_of($0, "workers")
	traced_bps = number_of($0, "bandwidth_bps")
	if (traced_bps > 0) # links that are what they are have none
		widen("bps", traced_bps)
	if (length(scenario) > 1000 || length(system_name) > 1000) # awk's buffers end at some length
		complain("'scenario' or 'system' is longer than 1000 bytes")
	n_categories = split(text_of($0, "kinds"), category, " ")
	for (i = 1; i <= n_categories; i++)
		category_number[category[i]] = i
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
			if ((pid in worker_of) || (substr(name, 8) + 0 in pid_of))
				complain("'" name "' or its 'pid' is there twice, must be there once")
			pid_of[substr(name, 8) + 0] = pid
			worker_of[pid] = substr(name, 8) + 0
			n_workers++
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

phase != "X" { next }

{
	begin = number_of($0, "ts")
	duration = number_of($0, "dur")
	kind = text_of($0, "cat")
	if (begin == "" || duration == "" || tid == "")
		complain("an event has no number for 'ts', 'dur' or 'tid'")
	if (duration + 0 < 0 || duration + 0 > 1e15)
		complain("'dur' is " duration ", must be from 0 to 1e15")
	if (begin + 0 < -1e15 || begin + 0 > 1e15)
		complain("'ts' is " begin ", must be from -1e15 to 1e15")
	if (!(kind in category_number))
		complain("'cat' is '" kind "', must be one of the 'kinds' of the first line")
	kind = category_number[kind]
	of_iteration = number_of(arguments, "iteration")
	if (of_iteration != "" && (of_iteration !~ /^[0-9]+$/ || length(of_iteration) > 9))
		complain("'iteration' is " of_iteration ", must be a whole number of up to nine digits")
	if (of_iteration + 0 > last_iteration)
		last_iteration = of_iteration + 0
	n_events++
}

END {
	if (has_failed)
		exit 2
	if (NR == 0)
		finish_with(FILENAME ": is empty")
	if (!is_closed)
		finish_with(FILENAME ": the trace is cut off, the last line must be ']}'")
	if (n_events == 0)
		finish_with(FILENAME ": there is no event in it")
}
