# What every reader of psd-plot does the same way: complaints with their place, and text for gnuplot. Reads nothing by itself.

function complain(what)
{
	print FILENAME ":" FNR ": " what > "/dev/stderr"
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

BEGIN { work = ENVIRON["PSD_PLOT_WORK"] }

{ sub(/\r$/, "") }
