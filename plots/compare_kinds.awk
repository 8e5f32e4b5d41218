# Adds seconds of each kind of operation to the results of compare.awk, from the files that kinds.awk wrote for both
# traces to the folders predicted and measured of PSD_PLOT_WORK: kind_predicted, kind_measured and kind_error of
# kind_name[1..n_kinds]. Adds a second table to table.txt.

# Reads the traced point: lines of trace.dat into traced[side, 1..7].
function read_trace(side,    line, i, word)
{
	while ((getline line < (work "/" side "/trace.dat")) > 0)
		traced[side, ++i] = line
	while ((getline line < (work "/" side "/kinds.dat")) > 0) {
		split(line, word, " ")
		if (!(word[1] in is_listed))
			category[++n_listed] = word[1]
		is_listed[word[1]] = 1
		kind_sec[side, word[1]] = word[2]
	}
}

function check_traces(    i, n, name)
{
	if (traced["predicted", 3] ~ /^real-/)
		finish_with(ENVIRON["PSD_PLOT_PREDICTED_TRACE"] ": its executor is '" traced["predicted", 3] \
			"', the first trace must be of psd-sim")
	if (traced["measured", 3] !~ /^real-/)
		finish_with(ENVIRON["PSD_PLOT_MEASURED_TRACE"] ": its executor is '" traced["measured", 3] \
			"', the second trace must be of psd-run")
	n = split("scenario system - nodes - workers bandwidth_bps", name, " ")
	for (i = 1; i <= n; i++)
		if (name[i] != "-" && traced["predicted", i] != traced["measured", i])
			finish_with(ENVIRON["PSD_PLOT_MEASURED_TRACE"] ": its " name[i] " is '" \
				printable(traced["measured", i]) "', must be '" printable(traced["predicted", i]) \
				"' as in " ENVIRON["PSD_PLOT_PREDICTED_TRACE"])
}

function traced_text(side)
{
	return printable(traced[side, 2]) " on " plural(traced[side, 4], "node", "nodes")
}

function add_kind(kind)
{
	if (kind_sec["predicted", kind] == "" && kind_sec["measured", kind] == "")
		return
	kind_name[++n_kinds] = kind
	kind_predicted[n_kinds] = kind_sec["predicted", kind]
	kind_measured[n_kinds] = kind_sec["measured", kind]
	# A send of psd-run ends when the kernel has the message, one of psd-sim when the line has.
	kind_error[n_kinds] = kind_predicted[n_kinds] == "" || kind == "send" ? "" : \
		error_of(kind_predicted[n_kinds], kind_measured[n_kinds])
}

function has_send(    k)
{
	for (k = 1; k <= n_kinds; k++)
		if (kind_name[k] == "send")
			return 1
	return 0
}

function write_kinds(    k)
{
	print "\nOperations of " traced_text("predicted") \
		", seconds of an iteration in which a worker is at it, from the traces:\n" > table_file
	printf "%-10s  %11s  %10s  %9s\n", "kind", "predicted s", "measured s", "error" > table_file
	for (k = 1; k <= n_kinds; k++)
		printf "%-10s  %11s  %10s  %9s\n", kind_name[k], four_digits(kind_predicted[k]),
			four_digits(kind_measured[k]), signed_percent(kind_error[k]) > table_file
	if (has_send())
		print "send has no error: psd-run's ends when the kernel has taken the message, " \
			"the line's time is in receive." > table_file
}

END {
	if (has_failed)
		exit 2
	n_kinds = 0
	if (ENVIRON["PSD_PLOT_PREDICTED_TRACE"] != "") {
		read_trace("predicted")
		read_trace("measured")
		check_traces()
		for (i = 1; i <= n_listed; i++)
			add_kind(category[i])
		write_kinds()
	}
}
