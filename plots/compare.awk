# Reads result CSVs with csv.awk and matches them point by point. The first file has the predictions; the next one, if
# PSD_PLOT_HAS_CALIBRATED is 1, the rows that a calibration used; all others have measured runs, one per row. A point
# has one prediction, or one for each run in their order. compare_text.awk and compare_page.awk write the point_...
# arrays and the summary. Refuses a measured row without a prediction.

# ---- reading ----

# Number in a column. Its limits keep quotients, sums and axes from overflowing.
function number_in(name, lowest,    text)
{
	text = field[at[name]]
	if (!is_number(text) || text + 0 < lowest || text + 0 > 1e15)
		complain("'" name "' is '" text "', must be a number from " lowest " to 1e15")
	return text + 0
}

# Compares text, because all digits count: up to 15 of them.
function whole_in(name, lowest,    text)
{
	text = field[at[name]]
	if (text !~ /^[0-9]+$/ || length(text) > 15 || text + 0 < lowest)
		complain("'" name "' is '" text "', must be a whole number of " lowest " or more")
	return text + 0
}

function point_name(system_name, nodes, workers, bps)
{
	return system_name ", " nodes (nodes == 1 ? " node, " : " nodes, ") \
		workers (workers == 1 ? " worker, " : " workers, ") short_bandwidth(bps)
}

function read_row(    f)
{
	read_fields()
	title = field[at["scenario"]]
	system_name = field[at["system"]]
	executor = field[at["executor"]]
	nodes = whole_in("nodes", 1)
	workers = whole_in("workers", 1)
	bps = field[at["bandwidth_bps"]]
	if (bps != "")
		bps = number_in("bandwidth_bps", 1)
	for (f = 1; f <= n_figures; f++)
		figure[f] = f <= n_seconds ? number_in(figure_name[f], f == ITERATION ? 1e-12 : 0) : \
			whole_in(figure_name[f], 0)
	fuse = fuse_in_row()
	check_numbers()
	key_of_sizes = system_name SUBSEP nodes SUBSEP workers SUBSEP sprintf("%.15g", bps)
	key = key_of_sizes SUBSEP fuse
}

function add_point(    p)
{
	p = ++n_points
	point_of[key, title] = p
	n_points_at[key]++
	only_point_at[key] = p
	is_predicted_title[title] = 1
	point_key[p] = key
	point_title[p] = title
	point_system[p] = system_name
	point_sizes[p] = key_of_sizes SUBSEP title
	n_sizes[point_sizes[p]]++
	point_fuse[p] = fuse
	point_nodes[p] = nodes
	point_workers[p] = workers
	point_bps[p] = bps
	return p
}

# A prediction whose constants were fitted to the published value of its point counts as calibrated.
function add_predicted(    p, n, f)
{
	if (executor ~ /^real-/)
		complain("'executor' is '" executor "', must be one that predicts, such as sim-flow: " \
			"the first file is the predicted one")
	p = (key, title) in point_of ? point_of[key, title] : add_point()
	n = ++n_predictions[p]
	if (n == 1)
		predicted_executor[p] = executor
	else if (executor != predicted_executor[p])
		complain("'executor' is '" executor "', must be '" predicted_executor[p] \
			"' as in line " point_line[p] ", which predicts the same point")
	point_line[p] = FNR
	is_fitted[p] = is_fitted[p] || is_fitted_row()
	for (f = 1; f <= n_figures; f++)
		predicted[f, p, n] = figure[f]
	predicted_by[executor] = 1
}

function add_calibrated()
{
	is_calibrated_at[key, title] = 1
	if (workers > calibrated_workers_max)
		calibrated_workers_max = workers
}

# The predicted point of the current row. If no prediction has its title, the other columns must name one point.
function find_point()
{
	if (title in is_predicted_title) {
		if ((key, title) in point_of)
			return point_of[key, title]
	} else if (n_points_at[key] == 1) {
		return only_point_at[key]
	} else if (n_points_at[key] > 1) {
		complain("'scenario' is '" title "', must be a title in " predicted_file \
			", where several scenarios have this point")
	}
	complain(point_name(system_name, nodes, workers, bps) " of '" title \
		"' is not predicted, must be a row of " predicted_file)
}

function add_measured(    p, n, f)
{
	if (executor !~ /^real-/)
		complain("'executor' is '" executor "', must be one that runs, such as real-cpu: " \
			"only the first file is the predicted one")
	p = find_point()
	n = ++n_runs[p]
	if (n == 1) {
		run_title[p] = title
		run_executor[p] = executor
		run_place[p] = FILENAME ":" FNR
	} else if (title != run_title[p]) {
		complain("'scenario' is '" title "', must be '" run_title[p] \
			"' as in " run_place[p] ", which is a run of the same point")
	} else if (executor != run_executor[p]) {
		complain("'executor' is '" executor "', must be '" run_executor[p] \
			"' as in " run_place[p] ", which is a run of the same point")
	}
	for (f = 1; f <= n_figures; f++)
		run[f, p, n] = figure[f]
	measured_by[executor] = 1
	n_all_runs++
}

function ratio_option(name, text,    ratio)
{
	ratio = text
	sub(/%$/, "", ratio)
	if (!is_number(ratio) || ratio + 0 <= 0 || ratio + 0 > (ratio == text ? 1 : 1000))
		finish_with("'" name "' is '" text "', must be a ratio such as 0.05 or 5%" \
			(ratio == text && is_number(ratio) && ratio + 0 > 1 ? ": " ratio " is " 100 * ratio " %" : ""))
	return ratio / (ratio == text ? 1 : 100)
}

BEGIN {
	figure_names = "iteration_sec compute_sec exposed_comm_sec tx_bytes_per_node rx_bytes_per_node"
	n_figures = split(figure_names, figure_name, " ")
	n_seconds = 3
	ITERATION = 1
	SENT = 4
	RECEIVED = 5
	has_calibrated = ENVIRON["PSD_PLOT_HAS_CALIBRATED"] + 0
	bar_ratio = ratio_option("--bar", ENVIRON["PSD_PLOT_BAR"])
	worst_bar_ratio = ratio_option("--worst", ENVIRON["PSD_PLOT_WORST"])
	if (worst_bar_ratio < bar_ratio)
		finish_with("'--worst' is " worst_bar_ratio ", must be " bar_ratio " or more, which is '--bar'")
	calibrated_workers_max = 0
}

FNR == 1 {
	n_files++
	role = n_files == 1 ? "predicted" : n_files == 2 && has_calibrated ? "calibrated" : "measured"
	if (role == "predicted")
		predicted_file = FILENAME
	if (role == "measured")
		measured_file[++n_measured_files] = FILENAME
	file_of_role[role] = FILENAME
	read_head("scenario system executor nodes workers bandwidth_bps " figure_names)
	next
}

/^$/ { next }

{
	read_row()
	n_rows[FILENAME, role]++
	if (role == "predicted")
		add_predicted()
	else if (role == "calibrated")
		add_calibrated()
	else
		add_measured()
}

# ---- points ----

# Median over the predictions, or over the runs, of a figure of a point.
function median_of(values, n_values, f, p,    i, n, value)
{
	n = n_values[p]
	for (i = 1; i <= n; i++)
		value[i] = values[f, p, i]
	return median(value, n)
}

# Prediction of a run: its own, or the one for all runs.
function prediction(f, p, i)
{
	return predicted[f, p, n_predictions[p] == 1 ? 1 : i]
}

# Quotient; empty if the divisor is 0.
function error_of(value, measured)
{
	return measured > 0 ? value / measured - 1 : ""
}

# Error of the median run, each run over its prediction.
function error_of_runs(f, p,    i, n, ratio)
{
	n = n_runs[p]
	for (i = 1; i <= n; i++) {
		if (prediction(f, p, i) == 0)
			return error_of(point_figure[f, p], measured_figure[f, p])
		ratio[i] = run[f, p, i] / prediction(f, p, i)
	}
	return error_of(1, median(ratio, n))
}

function has_exact_bytes(p,    i)
{
	for (i = 1; i <= n_runs[p]; i++)
		if (run[SENT, p, i] != prediction(SENT, p, i) || run[RECEIVED, p, i] != prediction(RECEIVED, p, i))
			return 0
	return 1
}

function add_mark(p, mark)
{
	point_marks[p] = point_marks[p] (point_marks[p] == "" ? "" : "; ") mark
}

# Spread of the runs in seconds, and in seconds over their prediction. A quarter of the runs, rounded down, is dropped
# at each end: otherwise the spread would grow with every repeat.
function note_spread(p,    i, n, n_left_out, sec, ratio, middle)
{
	n = n_runs[p]
	for (i = 1; i <= n; i++) {
		sec[i] = run[ITERATION, p, i]
		ratio[i] = sec[i] / prediction(ITERATION, p, i)
	}
	median(sec, n) # sorts
	middle = median(ratio, n)
	n_left_out = int(n / 4)
	least_sec[p] = sec[1 + n_left_out]
	most_sec[p] = sec[n - n_left_out]
	least_ratio[p] = ratio[1 + n_left_out]
	most_ratio[p] = ratio[n - n_left_out]
	# One run says nothing about it.
	point_spread[p] = n > 1 ? (most_ratio[p] - least_ratio[p]) / middle : ""
}

# Drops a part with hardly any measured time: an error of a microsecond would be millions of per cent.
function is_tiny(f, p)
{
	return measured_figure[f, p] < measured_figure[ITERATION, p] / 100
}

function measure_point(p,    f)
{
	for (f = 1; f <= n_figures; f++) {
		point_figure[f, p] = median_of(predicted, n_predictions, f, p)
		measured_figure[f, p] = median_of(run, n_runs, f, p)
		figure_error[f, p] = f > 1 && f <= n_seconds && is_tiny(f, p) ? "" : error_of_runs(f, p)
	}
	point_error[p] = figure_error[ITERATION, p]
	are_bytes_exact[p] = has_exact_bytes(p)
	note_spread(p)
}

# Results have nine digits: a value above a bar by rounding alone is within the bar.
function is_beyond(ratio, bar)
{
	return ratio + 0 > bar * (1 + 1e-9)
}

# Class of a point. The median has one bar, a single point a wider one. A point with more noise than a bar is not judged
# by it.
function judge_point(p,    at_predicted, at_measured)
{
	at_predicted = point_key[p] SUBSEP point_title[p]
	at_measured = point_key[p] SUBSEP run_title[p]
	is_listed_calibrated[p] = (at_predicted in is_calibrated_at) || (at_measured in is_calibrated_at)
	is_calibrated[p] = is_listed_calibrated[p] || is_fitted[p]
	delete is_calibrated_at[at_predicted]
	delete is_calibrated_at[at_measured]
	is_extrapolated[p] = has_calibrated && point_workers[p] > calibrated_workers_max
	if (is_listed_calibrated[p])
		add_mark(p, "calibrated")
	if (is_fitted[p])
		add_mark(p, "fitted")
	if (is_extrapolated[p])
		add_mark(p, "extrapolated")
	if (is_beyond(point_spread[p], worst_bar_ratio))
		add_mark(p, "too noisy")
	else if (is_beyond(point_spread[p], bar_ratio))
		add_mark(p, "too noisy for the median")
	is_in_worst[p] = !is_calibrated[p] && !is_beyond(point_spread[p], worst_bar_ratio)
	is_in_median[p] = !is_calibrated[p] && !is_beyond(point_spread[p], bar_ratio)
}

function absolute(value)
{
	return value < 0 ? -value : value
}

function count_point(p)
{
	if (n_runs[p] == 1)
		n_single_runs++
	if (are_bytes_exact[p])
		n_exact++
	if (is_fitted[p])
		n_fitted++
	if (is_calibrated[p])
		n_calibrated++
	else if (!is_in_worst[p])
		n_too_noisy++
	else if (!is_in_median[p])
		n_only_in_worst++
	if (is_in_median[p])
		median_errors[++n_in_median] = absolute(point_error[p])
	if (!is_in_worst[p])
		return
	n_in_worst++
	if (worst_point == "" || absolute(point_error[p]) > absolute(point_error[worst_point]))
		worst_point = p
	if (is_extrapolated[p])
		extrapolated_errors[++n_extrapolated] = absolute(point_error[p])
}

# As in a sweep of sizes, which repeats a system without sizes.
function are_one_prediction(p,    f, n)
{
	for (n = 2; n <= n_predictions[p]; n++)
		for (f = 1; f <= n_figures; f++)
			if (predicted[f, p, n] != predicted[f, p, 1])
				return 0
	return 1
}

END {
	if (has_failed)
		exit 2
	check_parts()
	if (!((predicted_file, "predicted") in n_rows))
		finish_with(predicted_file ":2: has no result, must have a row for each point")
	if (has_calibrated && !((file_of_role["calibrated"], "calibrated") in n_rows))
		finish_with(file_of_role["calibrated"] \
			":2: has no result, must have a row for each point that was calibrated")
	for (i = 1; i <= n_measured_files; i++)
		if (!((measured_file[i], "measured") in n_rows))
			finish_with(measured_file[i] ":2: has no result, must have a row for each run")
	n_measured = n_exact = n_calibrated = n_fitted = n_too_noisy = n_only_in_worst = n_in_median = n_in_worst = 0
	n_extrapolated = n_single_runs = n_predicted_often = n_titles = 0
	for (p = 1; p <= n_points; p++)
		if (n_sizes[point_sizes[p]] > 1 && point_fuse[p] != "")
			point_system[p] = point_system[p] ", " short_size(point_fuse[p])
	for (p = 1; p <= n_points; p++) {
		if (!(p in n_runs))
			continue
		if (are_one_prediction(p))
			n_predictions[p] = 1
		if (n_predictions[p] > 1 && n_predictions[p] != n_runs[p])
			finish_with(predicted_file ":" point_line[p] ": is one of " n_predictions[p] \
				" rows of this point, which has " plural(n_runs[p], "run", "runs") \
				": must be its only one, or one for each run")
		if (n_predictions[p] > 1)
			n_predicted_often++
		measured_point[++n_measured] = p
		if (!(point_title[p] in is_title_shown)) {
			is_title_shown[point_title[p]] = 1
			shown_title[++n_titles] = point_title[p]
		}
		measure_point(p)
		judge_point(p)
		count_point(p)
	}
	# Those that a point met have been taken out.
	n_unmet_calibrated = 0
	for (i in is_calibrated_at)
		n_unmet_calibrated++
	median_error = n_in_median > 0 ? median(median_errors, n_in_median) : ""
	is_median_met = n_in_median > 0 && !is_beyond(median_error, bar_ratio)
	is_worst_met = n_in_worst > 0 && !is_beyond(absolute(point_error[worst_point]), worst_bar_ratio)
}
