# Functions that readers of results share: errors with their place, text for gnuplot, the median. Reads no input by
# itself.

# Replaces bytes that no terminal and no XML may get: control characters, bytes that are not UTF-8, U+FFFE and U+FFFF.
function printable(text,    rest)
{
	gsub(/[\001-\037\177]|\302[\200-\237]|\357\277[\276\277]/, "?", text)
	if (text !~ /[\200-\377]/)
		return text
	rest = text
	text = ""
	while (match(rest, /[\200-\377]/)) {
		text = text substr(rest, 1, RSTART - 1)
		rest = substr(rest, RSTART)
		if (!match(rest, utf_8))
			RLENGTH = 1
		text = text (RLENGTH > 1 ? substr(rest, 1, RLENGTH) : "?")
		rest = substr(rest, RLENGTH + 1)
	}
	return text rest
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

# Text as gnuplot reads it: literally in single quotes, except for such a quote, which is put into double ones. In these
# backquotes would be a command, and backslashes escapes.
function quoted(text)
{
	text = printable(text)
	gsub(/'/, "'.\"'\".'", text)
	return "'" text "'"
}

# The title of --title, else this one.
function print_title(title, settings)
{
	if (ENVIRON["PSD_PLOT_HAS_TITLE"])
		title = ENVIRON["PSD_PLOT_TITLE"]
	print "plot_title = " quoted(title) > settings
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

BEGIN {
	work = ENVIRON["PSD_PLOT_WORK"]
	# RFC 3629: one character beyond ASCII
	tail = "[\200-\277]"
	utf_8 = "^([\302-\337]" tail "|\340[\240-\277]" tail "|[\341-\354\356\357]" tail tail \
		"|\355[\200-\237]" tail "|\360[\220-\277]" tail tail "|[\361-\363]" tail tail tail \
		"|\364[\200-\217]" tail tail ")"
}

FNR == 1 { sub(/^\357\273\277/, "") } # a byte order mark, as spreadsheets leave it

{ sub(/\r$/, "") }
