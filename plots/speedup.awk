# Reads the CSV of psd-sim and psd-run with csv.awk and writes data and settings for speedup.gp to the folder
# PSD_PLOT_WORK. A series is one line of the plot: a system and, if they differ, its bandwidth, scenario and executor.

function remember(list, text)
{
	if (!((list, text) in seen)) {
		seen[list, text] = ++count[list]
		item[list, count[list]] = text
	}
	return seen[list, text]
}

BEGIN {
	# Okabe and Ito's palette, told apart by colour-blind readers; dark ones first.
	most_over = 5
	most_lines = 32
	n_wanted = split(ENVIRON["PSD_PLOT_SYSTEMS"], wanted, ",")
	for (i = 1; i <= n_wanted; i++)
		is_wanted[wanted[i]] = 1
	n_colours = split("#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000 #8C510A", palette, " ")
}

FNR == 1 {
	read_head("scenario system executor workers bandwidth_bps images_per_sec speedup " \
		"published_images_per_sec published_speedup")
	n_files++
	next
}

/^$/ { next }

{
	read_fields()
	check_numbers()
	remember("colour", field[at["system"]]) # whatever is left out, a system keeps its own
	if (n_wanted > 0 && !(field[at["system"]] in is_wanted))
		next
	was_found[field[at["system"]]] = 1
	workers = field[at["workers"]]
	speedup = field[at["speedup"]]
	published = field[at["published_speedup"]]
	images = field[at["published_images_per_sec"]]
	bandwidth = field[at["bandwidth_bps"]]
	if (!is_number(workers) || workers < 1)
		complain("'workers' is '" workers "', must be 1 or more")
	if (bandwidth != "" && !is_number(bandwidth))
		complain("'bandwidth_bps' is '" bandwidth "', must be empty or a number")
	if (speedup == "")
		next # no baseline to compare with
	if (!is_number(speedup) || speedup + 0 <= 0)
		complain("'speedup' is '" speedup "', must be empty or a number above 0")
	if (published != "" && (!is_number(published) || published + 0 <= 0))
		complain("'published_speedup' is '" published "', must be empty or a number above 0")
	if (published == "" && images > 0 && field[at["images_per_sec"]] > 0)
		published = images / field[at["images_per_sec"]] * speedup # over the same worker

	n_rows++
	row_workers[n_rows] = workers + 0
	row_speedup[n_rows] = speedup
	row_published[n_rows] = published
	row_fitted[n_rows] = is_fitted_row()
	row_low[n_rows] = band_in_row("low")
	row_high[n_rows] = band_in_row("high")
	row_scenario[n_rows] = remember("scenario", field[at["scenario"]])
	row_system[n_rows] = remember("system", field[at["system"]])
	widen("speedup", speedup)
	widen("speedup", published)
	widen("bps", bandwidth)
	widen("workers", workers)
	# Executed values are drawn beside the predictions, as published ones are, not as variants of them.
	if (field[at["executor"]] ~ /^real-/) {
		system_number = row_system[n_rows]
		executed[system_number] = executed[system_number] workers + 0 " " speedup "\n"
		n_rows--
		n_executed_rows++
		next
	}
	row_executor[n_rows] = remember("executor", field[at["executor"]])
	row_bandwidth[n_rows] = remember("bandwidth", bandwidth)
	row_size[n_rows] = remember("size", fuse_in_row())
	if (fuse_in_row() != "")
		remember("gathering", row_system[n_rows] SUBSEP row_size[n_rows])
	remember("network", row_scenario[n_rows] SUBSEP row_bandwidth[n_rows])
}

# An end of the prediction's band as a speedup; empty without one.
function band_in_row(column,    end)
{
	end = column in at ? field[at[column]] : ""
	if (end != "" && (!is_number(end) || end + 0 <= 0))
		complain("'" column "' is '" end "', must be empty or a number above 0")
	return end != "" && field[at["images_per_sec"]] > 0 ? end / field[at["images_per_sec"]] * speedup : ""
}

# Counts over all files, drawn or not.
function all_systems(    i, text)
{
	for (i = 1; i <= count["colour"]; i++)
		text = text (i == 1 ? "" : i < count["colour"] ? ", " : " and ") "'" printable(item["colour", i]) "'"
	return text
}

function colour_of(system_number)
{
	return palette[(seen["colour", item["system", system_number]] - 1) % n_colours + 1]
}

# Tells whether a system occurs with several bucket sizes.
function has_sizes(system_number,    i, n, part)
{
	for (i = 1; i <= count["gathering"]; i++) {
		split(item["gathering", i], part, SUBSEP)
		n += part[1] == system_number
	}
	return n > 1
}

function variant_of(row)
{
	return row_bandwidth[row] SUBSEP row_executor[row] SUBSEP row_scenario[row] SUBSEP \
		(has_sizes(row_system[row]) ? row_size[row] : "")
}

function series_name(row,    name, variant)
{
	name = item["system", row_system[row]]
	variant = ""
	if (count["bandwidth"] > 1 && count["network"] > count["scenario"])
		variant = variant ", " short_bandwidth(item["bandwidth", row_bandwidth[row]])
	if (has_sizes(row_system[row]) && item["size", row_size[row]] != "")
		variant = variant ", " short_size(item["size", row_size[row]])
	if (count["executor"] > 1)
		variant = variant ", " item["executor", row_executor[row]]
	if (count["scenario"] > 1)
		variant = variant ", " substr(item["scenario", row_scenario[row]], head_length + 1,
			length(item["scenario", row_scenario[row]]) - head_length - tail_length)
	return name variant
}

# Moves the common begin and end of several titles to the plot's title. They end at a comma and begin at a blank or
# bracket.
function find_common_ends(    i, first, other, n)
{
	first = item["scenario", 1]
	head_length = tail_length = length(first)
	for (i = 2; i <= count["scenario"]; i++) {
		other = item["scenario", i]
		for (n = 0; n < head_length && substr(first, n + 1, 1) == substr(other, n + 1, 1);)
			n++
		head_length = n
		n = 0
		while (n < tail_length && substr(first, length(first) - n, 1) == substr(other, length(other) - n, 1))
			n++
		tail_length = n
	}
	while (head_length > 0 && substr(first, head_length - 1, 2) != ", ")
		head_length--
	while (tail_length > 0 && substr(first, length(first) - tail_length + 1, 2) !~ /^( \(|, )$/)
		tail_length--
	if (count["scenario"] < 2)
		head_length = tail_length = 0
	for (i = 1; i <= count["scenario"]; i++) # one that says no more than the others share
		if (length(item["scenario", i]) <= head_length + tail_length)
			head_length = tail_length = 0
}

function common_title(    first, title)
{
	first = item["scenario", 1]
	title = substr(first, 1, head_length) substr(first, length(first) - tail_length + 1)
	sub(/, *$/, "", title)
	sub(/,  *\(/, " (", title)
	return title == "" ? "Speedup" : title
}

# Tells whether two lines look equal: where both have points they differ by 2 % at most.
function do_coincide(one, other,    i, j, ratio, n_shared)
{
	for (i = 1; i <= n_points[one]; i++)
		for (j = 1; j <= n_points[other]; j++) {
			if (row_workers[point[one, i]] != row_workers[point[other, j]])
				continue
			ratio = row_speedup[point[one, i]] / row_speedup[point[other, j]]
			if (ratio > 1.02 || ratio * 1.02 < 1)
				return 0
			n_shared++
		}
	return n_shared > 0
}

# Inserts a row into its series in order of workers; equal rows keep the order of the files.
function add_row(series, row,    i)
{
	for (i = ++n_points[series]; i > 1 && row_workers[point[series, i - 1]] > row_workers[row]; i--)
		point[series, i] = point[series, i - 1]
	point[series, i] = row
}

END {
	if (has_failed)
		exit 2
	check_parts()
	for (i = 1; i <= n_wanted; i++)
		if (!(wanted[i] in was_found))
			finish_with(FILENAME ": there is no system '" wanted[i] "', there are " all_systems())
	if (n_files == 0 || n_rows + n_executed_rows == 0)
		finish_with(FILENAME ": there is no result with a speedup in it")
	find_common_ends()
	for (row = 1; row <= n_rows; row++) {
		series = remember("series", series_name(row))
		series_row[series] = row
		# Dash and marker tell the variants of one system apart.
		remember("variant", variant_of(row))
		add_row(series, row)
	}

	n_series = count["series"]
	if (n_series > most_lines)
		finish_with(FILENAME ": has " n_series " lines, of which a plot takes " most_lines \
			": choose systems with --systems, or give fewer files")
	n_published = 0
	settings = work "/series.gp"
	room = n_series + 1
	printf "array name[%d]\narray colour[%d]\narray variant[%d]\n", room, room, room > settings
	printf "array number[%d]\narray fitted[%d]\n", room, room > settings
	printf "array n_over[%d]\narray ribbon[%d]\n", room, room > settings
	# gnuplot looks at it even when there is none
	print "number[1] = 1; fitted[1] = 1; name[1] = ''; colour[1] = '#000000'" > settings
	print "variant[1] = 1; n_over[1] = 0; ribbon[1] = 1" > settings
	for (series = 1; series <= n_series; series++) {
		row = series_row[series]
		variant = seen["variant", variant_of(row)]
		printf "name[%d] = %s\n", series, quoted(item["series", series]) > settings
		printf "colour[%d] = \"%s\"\n", series, colour_of(row_system[row]) > settings
		# so do they tell systems apart for which there is no colour left
		variant += int((seen["colour", item["system", row_system[row]]] - 1) / n_colours)
		printf "variant[%d] = %d\n", series, variant > settings
		# a line below those of other systems is wider than them
		n_over = 0
		for (other = series + 1; other <= n_series && n_over < most_over; other++)
			n_over += row_system[series_row[other]] != row_system[row] && do_coincide(series, other)
		printf "n_over[%d] = %d\n", series, n_over > settings
		has_published = has_fitted = n_bands = 0
		for (i = 1; i <= n_points[series]; i++) {
			row = point[series, i]
			print row_workers[row], row_speedup[row] > (work "/series-" series ".dat")
			if (row_low[row] != "" && row_high[row] != "") {
				print row_workers[row], row_low[row], row_high[row] > (work "/ribbon-" series ".dat")
				n_bands++
			}
			if (row_published[row] != "" && row_fitted[row]) {
				print row_workers[row], row_published[row] > (work "/fitted-" series ".dat")
				has_fitted = 1
			} else if (row_published[row] != "") {
				print row_workers[row], row_published[row] > (work "/published-" series ".dat")
				has_published = 1
			}
		}
		close(work "/series-" series ".dat")
		close(work "/published-" series ".dat")
		close(work "/fitted-" series ".dat")
		close(work "/ribbon-" series ".dat")
		if (n_bands > 1)
			printf "ribbon[%d] = %d\n", ++n_ribbons, series > settings
		if (has_published)
			printf "number[%d] = %d\n", ++n_published, series > settings
		if (has_fitted)
			printf "fitted[%d] = %d\n", ++n_fitted, series > settings
	}
	longest = 0
	for (series = 1; series <= n_series; series++)
		if (length(item["series", series]) > longest)
			longest = length(item["series", series])
	printf "has_long_names = %d\n", (longest > 36) > settings
	printf "n_series = %d\nn_published = %d\nn_fitted = %d\n", n_series, n_published, n_fitted > settings
	printf "n_ribbons = %d\n", n_ribbons > settings
	n_executed = 0
	printf "array executed_name[%d]\narray executed_colour[%d]\n", count["system"], count["system"] > settings
	print "executed_name[1] = ''; executed_colour[1] = '#000000'" > settings
	for (system_number = 1; system_number <= count["system"]; system_number++)
		if (system_number in executed) {
			n_executed++
			printf "executed_name[%d] = %s\n", n_executed, quoted(item["system", system_number]) > settings
			printf "executed_colour[%d] = \"%s\"\n", n_executed, colour_of(system_number) > settings
			printf "%s", executed[system_number] > (work "/executed-" n_executed ".dat")
			close(work "/executed-" n_executed ".dat")
		}
	printf "n_executed = %d\n", n_executed > settings

	# A tic at every power of two, and at the ends when they are none.
	workers_min = least["workers"]
	workers_max = most["workers"]
	tics = workers_min
	for (power = 1; power < workers_max; power *= 2)
		if (power > workers_min * 1.3 && power * 1.3 < workers_max)
			tics = tics "," power
	if (workers_max > workers_min)
		tics = tics "," workers_max

	title = count["scenario"] == 1 ? title_at(item["scenario", 1]) : common_title()
	settings = work "/settings.gp"
	print_title(title, settings)
	printf "workers_min = %d.0\nworkers_max = %d.0\n", workers_min, workers_max > settings
	printf "speedup_min = %.9g * 1.0\nspeedup_max = %.9g * 1.0\n", least["speedup"], most["speedup"] > settings
	printf "workers_tics = \"%s\"\n", tics > settings
}
