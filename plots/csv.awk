# The CSV of psd-sim and psd-run (RFC 4180, one record a line), field by field. Reads nothing by itself.

# Splits one record into field[1..]; returns how many, or -1 when a quote is not closed or stands where it may not.
function split_csv(line, field,    n, rest, text)
{
	n = 0
	rest = line
	for (;;) {
		text = ""
		if (substr(rest, 1, 1) == "\"") {
			rest = substr(rest, 2)
			while (match(rest, /""|"/)) {
				text = text substr(rest, 1, RSTART - 1)
				if (RLENGTH == 1)
					break
				text = text "\""
				rest = substr(rest, RSTART + 2)
			}
			if (RSTART == 0)
				return -1
			rest = substr(rest, RSTART + 1)
			if (rest != "" && substr(rest, 1, 1) != ",")
				return -1
		} else {
			text = rest
			sub(/,.*/, "", text)
			rest = substr(rest, length(text) + 1)
			if (text ~ /"/)
				return -1
		}
		field[++n] = text
		if (rest == "")
			return n
		rest = substr(rest, 2)
	}
}

function is_number(text)
{
	return text ~ /^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/
}

function short_bandwidth(bps)
{
	if (bps == "")
		return "own platform"
	if (bps >= 1e9)
		return sprintf("%g Gb/s", bps / 1e9)
	return sprintf("%g Mb/s", bps / 1e6)
}
