# Reads either logs of psd-run --log, or results of systems that differ in bucket size, by a column or by their names.
# Writes data and settings for curve.gp to the folder PSD_PLOT_WORK: top-1 over epochs for each system, or seconds over
# the size for each number of workers. A system without a size is drawn as a level.

BEGIN {
	most_over = 5
	most_curves = 24 # the legend's lines beside the plot
	n_colours = split("#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000 #8C510A", palette, " ")
	split("B kB MB GB KiB MiB GiB", unit, " ")
	split("1 1000 1000000 1000000000 1024 1048576 1073741824", unit_bytes, " ")
}

# Bytes of a name such as 64KiB; 0 for another name.
function size_of(name,    i, number)
{
	number = name
	sub(/ ?[A-Za-z]+$/, "", number)
	for (i = 1; i in unit; i++)
		if (is_number(number) && substr(name, length(number) + 1) ~ "^ ?" unit[i] "$")
			return number * unit_bytes[i]
	return 0
}

function series_of(text)
{
	if (!(text in number_of)) {
		number_of[text] = ++n_series
		series_name[n_series] = text
	}
	return number_of[text]
}

# Inserts a point in order of x.
function add_point(series, x, y,    i)
{
	for (i = ++n_points[series]; i > 1 && point_x[series, i - 1] > x; i--) {
		point_x[series, i] = point_x[series, i - 1]
		point_y[series, i] = point_y[series, i - 1]
	}
	point_x[series, i] = x
	point_y[series, i] = y
	widen("x", x)
	widen("y", y)
}

# ---- refusals of plots that would mean nothing ----

# Counts the different values of a column over all rows of results.
function note_values(column,    value)
{
	value = column in at ? field[at[column]] : ""
	if (!((column, value) in has_value)) {
		has_value[column, value] = 1
		n_values[column]++
	}
}

# A curve needs several sizes. Names what varies instead, and the plot that shows it.
function refuse_one_size(    text)
{
	text = FILENAME ": has one size of buckets, a curve needs several: say 'sweep: {fuse: [...]}'; "
	if (n_values["nodes"] > 1 || n_values["workers"] > 1)
		finish_with(text "'workers' varies, which 'psd-plot speedup' draws")
	if (n_values["bandwidth_bps"] > 1)
		finish_with(text "'bandwidth_bps' varies, which 'psd-plot speedup' draws as a line for each " \
			"bandwidth if 'workers' varies, too")
	finish_with(text "there is nothing else that varies to draw")
}

# Two seconds at one size would be a vertical line.
function refuse_equal_sizes(series, bytes,    text)
{
	text = n_values["bandwidth_bps"] > 1 ? "'bandwidth_bps' varies" : n_values["scenario"] > 1 ? \
		"'scenario' varies" : n_values["executor"] > 1 ? "'executor' varies" : "rows are given twice"
	finish_with(FILENAME ": has several results of " short_size(bytes) " with " series_name[series] \
		", a curve needs one: " text ", keep the rows of one and draw each in a plot of its own")
}

function check_curves(    series, i, n_several)
{
	for (series = 1; series <= n_series; series++) {
		n_several += n_points[series] > 1
		for (i = 2; !is_log && i <= n_points[series]; i++)
			if (point_x[series, i] == point_x[series, i - 1])
				refuse_equal_sizes(series, point_x[series, i])
	}
	if (!is_log && !n_several)
		refuse_one_size()
	if (n_series + n_levels > most_curves)
		finish_with(FILENAME ": has " n_series + n_levels " curves, of which a plot takes " most_curves \
			": keep the rows of fewer systems (psd-sim and psd-run --system NAME)" \
			(is_log ? "" : " or numbers of nodes (--set 'sweep.nodes=[4, 16]')"))
}

# Training accuracy is drawn if no system was tested twice.
function remember_training(    accuracy)
{
	accuracy = "training_accuracy_ratio" in at ? field[at["training_accuracy_ratio"]] : ""
	if (!is_number(accuracy) || accuracy > 1 || !is_number(field[at["epoch"]]))
		return
	trained_series[++n_trained] = series_of(field[at["system"]])
	trained_epoch[n_trained] = field[at["epoch"]] + 0
	trained_accuracy[n_trained] = 100 * accuracy
}

# Tests become points in the colours of the lines.
function take_training(    series, i)
{
	for (series = 1; series <= n_series; series++)
		if (n_points[series] > 1)
			return 0
	if (n_trained < 2)
		return 0
	for (series = 1; series <= n_series; series++) {
		printf "" > (work "/tests-" series ".dat")
		for (i = 1; i <= n_points[series]; i++)
			print point_x[series, i], point_y[series, i] > (work "/tests-" series ".dat")
		close(work "/tests-" series ".dat")
		n_points[series] = 0
	}
	for (i = 1; i <= n_trained; i++)
		add_point(trained_series[i], trained_epoch[i], trained_accuracy[i])
	return 1
}

# Tells whether two curves look equal: at each common x they differ by less than a hundredth of the axis.
function do_coincide(one, other,    i, j, n_shared, apart)
{
	for (i = 1; i <= n_points[one]; i++)
		for (j = 1; j <= n_points[other]; j++) {
			if (point_x[one, i] != point_x[other, j])
				continue
			apart = point_y[one, i] - point_y[other, j]
			if (apart * apart > (most["y"] / 100) ^ 2)
				return 0
			n_shared++
		}
	return n_shared > 0
}

# Number of later curves that cover this one. It is drawn wider by as much, so that it stays visible.
function curves_over(series,    other, n_over)
{
	for (other = series + 1; other <= n_series && n_over < most_over; other++)
		n_over += do_coincide(series, other)
	return n_over + 0
}

FNR == 1 {
	read_head("system")
	is_log = "test_accuracy_ratio" in at
	read_head(is_log ? "system epoch test_accuracy_ratio" : "scenario system workers bandwidth_bps iteration_sec")
	n_logs += is_log
	if (++n_files > 1 && n_logs % n_files)
		complain("logs and results cannot be drawn together")
	next
}

/^$/ { next }

is_log {
	read_fields()
	accuracy = field[at["test_accuracy_ratio"]]
	if (accuracy != "" && (!is_number(accuracy) || accuracy > 1))
		complain("'test_accuracy_ratio' is '" accuracy "', must be empty or a number up to 1")
	if (accuracy != "" && !is_number(field[at["epoch"]]))
		complain("'epoch' is '" field[at["epoch"]] "', must be a number")
	check_numbers()
	if (accuracy != "")
		add_point(series_of(field[at["system"]]), field[at["epoch"]] + 0, 100 * accuracy)
	remember_training()
	next
}

{
	read_fields()
	seconds = field[at["iteration_sec"]]
	named_bytes = size_of(field[at["system"]])
	bytes = named_bytes > 0 ? named_bytes : fuse_in_row() + 0
	if (!is_number(seconds) || seconds <= 0)
		complain("'iteration_sec' is '" seconds "', must be a number above 0")
	if (!is_number(field[at["workers"]]))
		complain("'workers' is '" field[at["workers"]] "', must be a number")
	check_numbers()
	title = field[at["scenario"]]
	note_values("scenario")
	note_values("executor")
	note_values("nodes")
	note_values("workers")
	note_values("bandwidth_bps")
	widen("bps", field[at["bandwidth_bps"]])
	swept = bytes > 0 && named_bytes == 0 ? field[at["system"]] : ""
	if (swept != "" && first_swept == "")
		first_swept = swept
	workers = field[at["workers"]] + 0
	series = series_of((swept == first_swept || swept == "" ? "" : swept ", ") workers \
		(workers == 1 ? " worker" : " workers"))
	is_first[series] = is_first[series] || swept == first_swept
	has_several_swept = has_several_swept || (swept != "" && swept != first_swept)
	if (bytes > 0) {
		add_point(series, bytes, 1000 * seconds)
		tic[bytes] = named_bytes > 0 ? field[at["system"]] : short_size(bytes)
		next
	}
	if ((series, field[at["system"]]) in has_level) # the same at every size
		next
	has_level[series, field[at["system"]]] = 1
	level[++n_levels] = series " " 1000 * seconds
	level_name[n_levels] = field[at["system"]]
	widen("y", 1000 * seconds)
}

END {
	if (has_failed)
		exit 2
	check_parts()
	is_training = n_logs > 0 && take_training()
	for (series = 1; series <= n_series; series++)
		n_drawn += n_points[series] > 0
	if (n_drawn == 0)
		finish_with(FILENAME ": has neither tests nor systems that gather to sizes or are named by them")
	check_curves()
	settings = work "/settings.gp"
	print_title(is_log ? "Learning" : title_at(title), settings)
	printf "is_log = %d\nis_training = %d\n", is_log, is_training > settings
	printf "n_series = %d\nn_levels = %d\n", n_series, n_levels > settings
	printf "x_min = %.9g\nx_max = %.9g\n", least["x"], most["x"] > settings
	printf "y_min = %.9g\ny_max = %.9g\n", least["y"], most["y"] > settings
	printf "array name[%d]\narray colour[%d]\narray n_over[%d]\n", n_series, n_series, n_series > settings
	printf "array level[%d]\narray level_name[%d]\narray level_colour[%d]\narray level_dash[%d]\n",
		n_levels + 1, n_levels + 1, n_levels + 1, n_levels + 1 > settings
	for (series = 1; series <= n_series; series++) {
		in_front = has_several_swept && is_first[series] ? first_swept ", " : ""
		printf "name[%d] = %s\n", series, quoted(in_front series_name[series]) > settings
		printf "colour[%d] = \"%s\"\n", series, palette[(series - 1) % n_colours + 1] > settings
		printf "n_over[%d] = %d\n", series, curves_over(series) > settings
		printf "" > (work "/series-" series ".dat")
		for (i = 1; i <= n_points[series]; i++)
			print point_x[series, i], point_y[series, i] > (work "/series-" series ".dat")
		close(work "/series-" series ".dat")
	}
	for (i = 1; i <= n_levels; i++) {
		split(level[i], part, " ")
		printf "level[%d] = %.9g\nlevel_name[%d] = %s\nlevel_colour[%d] = \"%s\"\n", i, part[2], i,
			quoted(level_name[i] ", " series_name[part[1]]), i,
			palette[(part[1] - 1) % n_colours + 1] > settings
		# levels of one colour
		printf "level_dash[%d] = %d\n", i, 2 + n_levels_of[part[1]]++ % 4 > settings
	}
	tics = ""
	for (bytes in tic)
		tics = tics (tics == "" ? "" : ", ") "\"" tic[bytes] "\" " bytes
	printf "x_tics = %s\n", quoted(tics) > settings
}
