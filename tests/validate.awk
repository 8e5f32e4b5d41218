# Reads the table of sources, then points.csv. Prints errors by source, stack and method, and the points of the source
# `shown`. Writes record.txt, sources.gp, checked-N.dat and fitted-N.dat to the folder `out`. Exits with 1 if a bar is
# missed. Errors are predicted / published - 1. Those of values to which nothing was fitted stand apart.

function magnitude(x) { return x < 0 ? -x : x }

# Adds an error to a group, of values that were fitted or not.
function add(group, is_fitted, error,    n)
{
	n = ++count[group, is_fitted]
	errors[group, is_fitted, n] = magnitude(error)
	total[group, is_fitted] += magnitude(error)
	if (n == 1 || magnitude(error) > magnitude(worst[group, is_fitted]))
		worst[group, is_fitted] = error
}

function median_of(group, is_fitted,    i, values)
{
	for (i = 1; i <= count[group, is_fitted]; i++)
		values[i] = errors[group, is_fitted, i]
	return median(values, count[group, is_fitted])
}

function part(group, is_fitted)
{
	if (!count[group, is_fitted])
		return sprintf("%6s %8s %8s", "-", "", "")
	return sprintf("%6d %6.1f %% %+6.1f %%", count[group, is_fitted], 100 * median_of(group, is_fitted),
		100 * worst[group, is_fitted])
}

function head(title)
{
	printf "\n%-22s %24s   %24s\n", "", "not fitted", "fitted"
	printf "%-22s %6s %8s %8s   %6s %8s %8s\n", title, "values", "median", "worst", "values", "median", "worst"
}

function tell(name, group, more) { printf "%-22s %s   %s%s\n", name, part(group, 0), part(group, 1), more }

# Bars of a source hold for values to which nothing was fitted, or for all where all were.
function judge(source, kind, value, bar)
{
	if (bar == "-")
		return
	if (100 * value > bar + 0) {
		printf "validate: %s: %s error %.1f %%, above its bar of %s %%\n", source, kind, 100 * value, bar
		has_missed = 1
	}
}

function note(list, name)
{
	if (!((list, name) in known))
		names[list, ++n_names[list]] = name
	known[list, name] = 1
}

FNR == NR {
	if ($0 ~ /^#/ || NF == 0)
		next
	if (NF != 5)
		complain("a source has " NF " words, must have name, scenarios, and bars of median, mean and worst")
	note("source", $1)
	number[$1] = n_names["source"]
	bars[$1] = $3 " " $4 " " $5
	next
}

FNR == 1 { read_head("source scenario system stack method workers published predicted low high use"); next }

{
	read_fields()
	source = field[at["source"]]
	stack = field[at["stack"]]
	method = field[at["method"]]
	published = field[at["published"]] + 0 # otherwise text, which compares as such
	predicted = field[at["predicted"]] + 0
	is_fitted = field[at["use"]] == "fit"
	if (!(source in number))
		complain("source '" source "' is not in the table of sources")
	error = predicted / published - 1
	add("source " source, is_fitted, error)
	if (stack != "-") {
		note("stack", stack)
		add("stack " stack, is_fitted, error)
	}
	note("method", method)
	add("method " method, is_fitted, error)
	if (field[at["low"]] != "" && !is_fitted) {
		n_of_band[stack]++
		n_of_bands++
		# The record, of which bands are made, has five digits.
		is_inside = published >= field[at["low"]] * (1 - 1e-4) && published <= field[at["high"]] * (1 + 1e-4)
		n_inside[stack] += is_inside
		n_all_inside += is_inside
	}
	data = out "/" (is_fitted ? "fitted" : "checked") "-" number[source] ".dat"
	printf "%.6g %.6g\n", published, predicted > data
	has_data[is_fitted, number[source]] = 1
	where = field[at["scenario"]] ": " field[at["system"]] ", " field[at["workers"]] " worker" \
		(field[at["workers"]] == 1 ? "" : "s")
	if (stack != "-" && stack != "none")
		printf "%s %s(\"%s\",\n%s \t\"%s\", %s, %.5g)\n", stack, is_fitted ? "FITTED" : "CHECKED", stack, stack,
			where, published, predicted > (out "/record.txt")
	if (source == shown)
		printf "%-84s %-9s %8.6g  predicted %8.6g  %+6.1f %%%s\n", where, stack, published, predicted,
			100 * error, is_fitted ? "  fitted" : ""
}

END {
	if (has_failed)
		exit 2
	printf "" > (out "/record.txt")
	head("source")
	for (i = 1; i <= n_names["source"]; i++) {
		name = names["source", i]
		tell(name, "source " name, "")
		list[0] = list[0] (has_data[0, i] ? " " i : "")
		list[1] = list[1] (has_data[1, i] ? " " i : "")
		legend = legend sprintf("name[%d] = %s\n", i, quoted(name))
	}
	printf "n_sources = %d\narray name[n_sources]\n%schecked = \"%s\"\nfitted = \"%s\"\n", n_names["source"],
		legend, list[0], list[1] > (out "/sources.gp")
	head("stack")
	for (i = 1; i <= n_names["stack"]; i++) {
		name = names["stack", i]
		tell(name, "stack " name, n_of_band[name] ? sprintf("   %d of %d in the band", n_inside[name],
			n_of_band[name]) : "   no band")
	}
	head("method")
	for (i = 1; i <= n_names["method"]; i++)
		tell(names["method", i], "method " names["method", i], "")
	print ""
	if (n_of_bands) {
		printf "bands: %d of %d values to which nothing was fitted, %.0f %%\n", n_all_inside, n_of_bands,
			100 * n_all_inside / n_of_bands
		if (n_all_inside < 0.7 * n_of_bands || n_all_inside > 0.9 * n_of_bands) {
			print "validate: bands must hold 70 to 90 %"
			has_missed = 1
		}
	}
	for (i = 1; i <= n_names["source"]; i++) {
		name = names["source", i]
		which = count["source " name, 0] ? 0 : 1
		if (!count["source " name, which]) {
			print "validate: " name ": there is no value"
			has_missed = 1
			continue
		}
		split(bars[name], bar, " ")
		judge(name, "median", median_of("source " name, which), bar[1])
		judge(name, "mean", total["source " name, which] / count["source " name, which], bar[2])
		judge(name, "worst", magnitude(worst["source " name, which]), bar[3])
	}
	exit has_missed
}
