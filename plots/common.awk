# What every reader of psd-plot does the same way: complaints with their place, text for gnuplot, the median. Reads
# nothing by itself.

# What a terminal must not act on.
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

# For what is wrong with no line in particular.
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

# Into least[name] and most[name]; what is empty is none.
function widen(name, value)
{
	if (value != "" && (!(name in least) || value + 0 < least[name]))
		least[name] = value + 0
	if (value != "" && (!(name in most) || value + 0 > most[name]))
		most[name] = value + 0
}

# Of value[1..n], which it sorts; the mean of the middle two where n is even.
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

# A title with the bandwidths that "bps" was widened to for the one that it names: --set changes the
# points', not the title.
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

# 4MiB, as scenarios have it: the largest unit that leaves a whole number.
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
