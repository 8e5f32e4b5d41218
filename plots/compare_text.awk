# Writes the results of compare.awk to the folder PSD_PLOT_WORK: table.txt (aligned table with a summary in words) and
# points.csv. The page uses the same cells and sentences.

# ---- figures as text ----

# Four significant digits, never an exponent.
function four_digits(value,    decimals)
{
	if (value == "")
		return "-"
	if (value <= 0)
		return "0"
	decimals = 3 - int(log(value) / log(10) + 1000) + 1000
	decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals
	return sprintf("%." decimals "f", value)
}

function percent(ratio,    text)
{
	if (ratio == "")
		return "-"
	text = sprintf("%.1f", 100 * ratio)
	return (text + 0 == 0 ? "0.0" : text) " %"
}

function signed_percent(ratio,    text)
{
	text = percent(ratio)
	return text ~ /^(-|0\.0 )/ ? text : "+" text
}

function bar_text(ratio)
{
	return sprintf("%g %%", 100 * ratio)
}

function plural(n, one, many)
{
	return n " " (n == 1 ? one : many)
}

# Number of columns on the screen, of text in UTF-8.
function width_of(text)
{
	gsub(/[\200-\277]/, "", text)
	return length(text)
}

# ---- the table ----

# Adds the next cell of a point's row; all points describe its column alike.
function put(p, group, head, is_left, text)
{
	column_group[++n_table_columns] = group
	column_head[n_table_columns] = head
	column_is_left[n_table_columns] = is_left
	cell[p, n_table_columns] = text
}

function bytes_text(p)
{
	if (are_bytes_exact[p])
		return "exact"
	return "sent " signed_percent(figure_error[SENT, p]) ", received " signed_percent(figure_error[RECEIVED, p])
}

function fill_cells(p,    f, group)
{
	n_table_columns = 0
	put(p, "", "system", 1, printable(point_system[p]))
	put(p, "", "nodes", 0, point_nodes[p])
	put(p, "", "workers", 0, point_workers[p])
	put(p, "", "bandwidth", 0, short_bandwidth(point_bps[p]))
	for (f = 1; f <= n_seconds; f++) {
		group = f == ITERATION ? "iteration, s" : f == 2 ? "compute, s" : "exposed communication, s"
		put(p, group, "predicted", 0, four_digits(point_figure[f, p]))
		put(p, group, "measured", 0, four_digits(measured_figure[f, p]))
		put(p, group, "error", 0, signed_percent(figure_error[f, p]))
		error_figure[n_table_columns] = f
		if (f == ITERATION) {
			put(p, group, "runs", 0, n_runs[p])
			put(p, group, "spread", 0, percent(point_spread[p]))
		}
	}
	put(p, "", "bytes", 1, bytes_text(p))
	put(p, "", "marks", 1, point_marks[p])
}

function padded(text, width, is_left,    blanks)
{
	blanks = sprintf("%" (width - width_of(text) + 1) "s", "")
	blanks = substr(blanks, 2)
	return is_left ? text blanks : blanks text
}

function measure_columns(    c, i)
{
	for (c = 1; c <= n_table_columns; c++) {
		column_width[c] = width_of(column_head[c])
		for (i = 1; i <= n_measured; i++)
			if (width_of(cell[measured_point[i], c]) > column_width[c])
				column_width[c] = width_of(cell[measured_point[i], c])
	}
}

# The page has all columns side by side. Here lines would be too long, so parts of the iteration follow below.
function choose_columns(is_of_parts,    c, i)
{
	for (c = 1; c <= n_table_columns; c++)
		is_shown[c] = c <= 4 ||
			is_of_parts == (column_group[c] ~ /^(compute|exposed)/ || column_head[c] == "bytes")
	is_shown[3] = 0
	for (i = 1; i <= n_measured; i++)
		is_shown[3] = is_shown[3] || point_workers[measured_point[i]] != point_nodes[measured_point[i]]
}

# The name of a group stands above its columns, with a rule up to the end of the last one.
function group_line(    c, line, width, label)
{
	for (c = 1; c <= n_table_columns; c++) {
		if (!is_shown[c])
			continue
		width = column_width[c]
		label = column_group[c]
		while (label != "" && c < n_table_columns && column_group[c + 1] == label)
			width += 2 + column_width[++c]
		if (label != "") {
			label = label " "
			while (length(label) < width)
				label = label "-"
		}
		line = line (line == "" ? "" : "  ") padded(label, width, 1)
	}
	return line
}

function table_line(p, is_head,    c, line)
{
	for (c = 1; c <= n_table_columns; c++)
		if (is_shown[c])
			line = line (c == 1 ? "" : "  ") \
				padded(is_head ? column_head[c] : cell[p, c], column_width[c], column_is_left[c])
	sub(/ +$/, "", line)
	return line
}

function write_points_text(is_of_parts,    i, p, text, previous)
{
	choose_columns(is_of_parts)
	text = group_line()
	sub(/ +$/, "", text)
	print text > table_file
	print table_line(0, 1) > table_file
	for (i = 1; i <= n_measured; i++) {
		p = measured_point[i]
		if (n_titles > 1 && (i == 1 || point_title[p] != previous))
			print (i == 1 ? "" : "\n") printable(point_title[p]) > table_file
		previous = point_title[p]
		print table_line(p, 0) > table_file
	}
	print "" > table_file
}

function write_table(    i)
{
	table_file = work "/table.txt"
	write_points_text(0)
	write_points_text(1)
	print "compute: measured as time of the processor or GPU, predicted as time of the clock. " \
		"-: less than a hundredth of the iteration." > table_file
	print "" > table_file
	for (i = 1; i <= n_sentences; i++)
		print sentence[i] > table_file
}

# ---- the summary ----

function say(text)
{
	sentence[++n_sentences] = text
}

function point_text(p)
{
	return printable(point_name(point_system[p], point_nodes[p], point_workers[p], point_bps[p])) \
		(n_titles > 1 ? " of " printable(point_title[p]) : "")
}

function not_counted(    text)
{
	text = n_calibrated > n_fitted ? n_calibrated - n_fitted " calibrated" : ""
	if (n_fitted > 0)
		text = text (text == "" ? "" : ", ") n_fitted " fitted to published values"
	if (n_too_noisy > 0)
		text = text (text == "" ? "" : ", ") n_too_noisy " too noisy (spread above " \
			bar_text(worst_bar_ratio) ")"
	return text
}

function summarise(    n_unmeasured, text)
{
	if (n_in_median > 0)
		say("Median absolute error " percent(median_error) " of " plural(n_in_median, "point", "points") \
			", bar " bar_text(bar_ratio) ": " (is_median_met ? "met" : "not met") ".")
	else
		say("Median absolute error: no point is counted, the bar of " bar_text(bar_ratio) \
			" is neither met nor missed.")
	if (n_in_worst > 0)
		say("Worst absolute error " percent(absolute(point_error[worst_point])) \
			" of " plural(n_in_worst, "point", "points") ", bar " bar_text(worst_bar_ratio) ": " \
			(is_worst_met ? "met" : "not met") "; it is at " point_text(worst_point) ".")
	else
		say("Worst absolute error: no point is counted, the bar of " bar_text(worst_bar_ratio) \
			" is neither met nor missed.")
	text = plural(n_measured, "point", "points") " measured by " plural(n_all_runs, "run", "runs")
	if (not_counted() != "")
		text = text "; not counted: " not_counted()
	if (n_only_in_worst > 0)
		text = text "; too noisy for the median: " n_only_in_worst " (spread above " bar_text(bar_ratio) ")"
	say(text ".")
	if (n_extrapolated > 0) {
		extrapolated_worst = 0
		for (i = 1; i <= n_extrapolated; i++)
			if (extrapolated_errors[i] > extrapolated_worst)
				extrapolated_worst = extrapolated_errors[i]
		say("Counted and extrapolated to more than " calibrated_workers_max " workers: " \
			plural(n_extrapolated, "point", "points") ", median absolute error " \
			percent(median(extrapolated_errors, n_extrapolated)) ", worst " percent(extrapolated_worst) ".")
	}
	say("Bytes per node are exact at " n_exact " of " plural(n_measured, "point", "points") ".")
	if (n_single_runs > 0)
		say(plural(n_single_runs, "point was", "points were") " run once: how far runs scatter is not known, " \
			"and a miss may be noise. Run again, and give all files.")
	if (n_predicted_often > 0)
		say(plural(n_predicted_often, "point has", "points have") " a prediction for each run: " \
			"errors and spreads are of the runs over theirs.")
	n_unmeasured = n_points - n_measured
	if (n_unmeasured > 0)
		say(plural(n_unmeasured, "predicted row has", "predicted rows have") " no measurement.")
	if (n_unmet_calibrated > 0)
		say(plural(n_unmet_calibrated, "calibrated row is", "calibrated rows are") \
			" of points that were not measured here.")
}

# ---- CSV ----

# As psd_text_add_csv(): a spreadsheet would take a sign at the begin for a formula.
function csv_field(text)
{
	if (text ~ /^'*[-=+@]/)
		text = "'" text
	if (text !~ /[",]/ && text !~ /^#/)
		return text
	gsub(/"/, "\"\"", text)
	return "\"" text "\""
}

function csv_number(value)
{
	return value == "" ? "" : sprintf("%.9g", value)
}

function yes_or_no(is_so)
{
	return is_so ? "yes" : "no"
}

function csv_line(p,    f, line)
{
	line = csv_field(point_title[p]) "," csv_field(point_system[p]) "," csv_field(run_executor[p]) "," \
		point_nodes[p] "," point_workers[p] "," \
		(point_bps[p] == "" ? "" : sprintf("%.15g", point_bps[p])) "," n_runs[p]
	for (f = 1; f <= n_figures; f++) {
		line = line sprintf(f <= n_seconds ? ",%.9g,%.9g" : ",%.0f,%.0f",
			point_figure[f, p], measured_figure[f, p])
		if (f == ITERATION)
			line = line "," csv_number(point_spread[p]) "," csv_number(point_error[p])
	}
	return line "," yes_or_no(are_bytes_exact[p]) "," yes_or_no(is_calibrated[p]) "," \
		(has_calibrated ? yes_or_no(is_extrapolated[p]) : "") "," \
		yes_or_no(is_in_median[p]) "," yes_or_no(is_in_worst[p])
}

function write_csv(    i, f, head)
{
	csv_file = work "/points.csv"
	head = "scenario,system,executor,nodes,workers,bandwidth_bps,repeats"
	for (f = 1; f <= n_figures; f++)
		head = head ",predicted_" figure_name[f] ",measured_" figure_name[f] \
			(f == ITERATION ? ",spread_ratio,error_ratio" : "")
	print head ",are_bytes_exact,is_calibrated,is_extrapolated,is_in_median,is_in_worst" > csv_file
	for (i = 1; i <= n_measured; i++)
		print csv_line(measured_point[i]) > csv_file
}

END {
	if (has_failed)
		exit 2
	for (i = 1; i <= n_measured; i++)
		fill_cells(measured_point[i])
	summarise()
	measure_columns()
	write_table()
	write_csv()
}
