# What every reader of psd-plot does the same way: complaints with their place, text for gnuplot, the median. Reads nothing by itself.

# What a terminal must not act on.
function printable(text)
{
	gsub(/[\001-\037\177]/, "?", text)
	return text
}

function complain(what)
{
	print FILENAME ":" FNR ": " printable(what) > "/dev/stderr"
	has_failed = 1
	exit 2
}

# For what is wrong with no line in particular.
function finish_with(what)
{
	print what > "/dev/stderr"
	has_failed = 1
	exit 2
}

function quoted(text)
{
	gsub(/'/, "''", text)
	return "'" text "'"
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

BEGIN { work = ENVIRON["PSD_PLOT_WORK"] }

{ sub(/\r$/, "") }
