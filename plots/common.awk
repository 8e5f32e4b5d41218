# Functions that all readers of psd-plot share: errors with their place, text for gnuplot, the median. Reads no input by
# itself.

# Replaces control characters, on which a terminal would act.
function printable(text)
{
	gsub(/[\001-\037\177]|\302[\200-\237]/, "?", text)
	return text
}

function complain(what)
{
	print printable(FILENAME ":" FNR ": " what) > "/dev/stderr"
	has_failed = 1
	exit 2
}

# Reports an error that belongs to no line.
function finish_with(what)
{
	print printable(what) > "/dev/stderr"
	has_failed = 1
	exit 2
}

function quoted(text)
{
	gsub(/'/, "''", text)
	return "'" text "'"
}

# Widens least[name] and most[name] by a value; ignores an empty one.
function widen(name, value)
{
	if (value != "" && (!(name in least) || value + 0 < least[name]))
		least[name] = value + 0
	if (value != "" && (!(name in most) || value + 0 > most[name]))
		most[name] = value + 0
}

# Median of value[1..n], which it sorts; for an even n the mean of the middle two.
function median(value, n,    i, j, held)
{
	for (i = 2; i <= n; i++) {
		held = value[i]
		for (j = i - 1; j >= 1 && value[j] > held; j--)
			value[j + 1] = value[j]
		value[j + 1] = held
	}
	return n % 2 ? value[(n + 1) / 2] : (value[n / 2] + value[n / 2 + 1]) / 2
}

# Replaces a title's bandwidth by those of the points ("bps"): --set changes the points, not the title.
function title_at(title,    bandwidth, named)
{
	if (!("bps" in least))
		return title
	bandwidth = short_bandwidth(least["bps"])
	if (least["bps"] != most["bps"])
		bandwidth = bandwidth " to " short_bandwidth(most["bps"])
	if (!match(title, /[0-9.]+ ?[GM](bit\/s|b\/s|bps|bE)/))
		return title ", " bandwidth
	named = substr(title, RSTART, RLENGTH)
	if (least["bps"] == most["bps"] && named * (named ~ /G/ ? 1e9 : 1e6) == least["bps"])
		return title
	return substr(title, 1, RSTART - 1) bandwidth substr(title, RSTART + RLENGTH)
}

# A size as in scenarios, such as 4MiB: in the largest unit that gives a whole number.
function short_size(bytes,    i, unit)
{
	split("GiB MiB KiB GB MB kB", unit, " ")
	split("1073741824 1048576 1024 1000000000 1000000 1000", size_unit, " ")
	for (i = 1; i in unit; i++)
		if (bytes % size_unit[i] == 0)
			return sprintf("%d%s", bytes / size_unit[i], unit[i])
	return bytes "B"
}

function short_bandwidth(bps)
{
	if (bps == "")
		return "own platform"
	if (bps + 0 >= 1e9) # a key of an array is text
		return sprintf("%g Gb/s", bps / 1e9)
	return sprintf("%g Mb/s", bps / 1e6)
}

BEGIN { work = ENVIRON["PSD_PLOT_WORK"] }

FNR == 1 { sub(/^\357\273\277/, "") } # a byte order mark, as spreadsheets leave it

{ sub(/\r$/, "") }
