# The CSV of psd-sim and psd-run (RFC 4180, one record a line): fields, and columns by name. Reads no input by itself.

# Splits one record into field[1..]. Returns their number, or -1 for a quote that is open or out of place.
function split_csv(line, field,    n, rest, text)
{
	n = 0
	rest = printable(line)
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
		sub(/^'+[-=+@]/, "\n&", text) # as psd_text_add_csv() guards names
		sub(/^\n'/, "", text)
		field[++n] = text
		if (rest == "")
			return n
		rest = substr(rest, 2)
	}
}

# Reads the head line of results into at[column]. needed: names of required columns, separated by blanks; others are
# allowed. number_at[i]: names of those that psd-sim and psd-run fill with numbers.
function read_head(needed,    i, n, name)
{
	split("", number_at)
	n_columns = split_csv($0, field)
	split("", at)
	for (i = 1; i <= n_columns; i++) {
		if (field[i] in at)
			complain("column '" field[i] "' is there twice, must be there once")
		at[field[i]] = i
	}
	n = split("nodes workers bandwidth_bps iteration_sec images_per_sec speedup compute_sec exposed_comm_sec " \
		"tx_bytes_per_node rx_bytes_per_node published_images_per_sec published_speedup error_ratio " \
		"other_work_sec other_waiting_sec fuse_bytes tokens_per_sec iteration_p50_sec iteration_p95_sec " \
		"iteration_p99_sec efficiency memory_bytes hours cost iteration epoch loss " \
		"training_accuracy_ratio elapsed_sec test_accuracy_ratio", name, " ")
	for (i = 1; i <= n; i++)
		if (name[i] in at)
			number_at[at[name[i]]] = name[i]
	n_needed = split(needed, name, " ")
	for (i = 1; i <= n_needed; i++)
		if (!(name[i] in at))
			complain("column '" name[i] "' is missing, the first line must be that of psd-sim --csv or " \
				"psd-run --csv: 'scenario,system,executor,nodes,workers,...'")
}

# Reads a row into field[].
function read_fields(    n)
{
	n = split_csv($0, field)
	if (n < 0)
		complain("a quoted field is not closed")
	if (n != n_columns)
		complain("the line has " n " fields, must have " n_columns)
	for (; n > 0; n--)
		if (length(field[n]) > 1000) # awk's buffers end at some length
			complain("field " n " has " length(field[n]) " bytes, must have 1000 or fewer")
	if ("shard" in at && "row" in at && "rows" in at)
		note_part(field[at["scenario"]])
}

# Notes a row of a sweep that psd-sim --shard predicted in parts.
function note_part(sweep)
{
	if (field[at["shard"]] !~ /^[1-9][0-9]*[/][1-9][0-9]*$/ || field[at["row"]] !~ /^[1-9][0-9]*$/ || \
		field[at["rows"]] !~ /^[1-9][0-9]*$/)
		complain("'shard', 'row' and 'rows' must be such as 2/8,10,40")
	row_is_there[sweep, field[at["row"]] + 0] = 1
	n_rows_of[sweep] = field[at["rows"]] + 0
	n_shards_of[sweep] = substr(field[at["shard"]], index(field[at["shard"]], "/") + 1) + 0
}

# Refuses a sweep of which a row is missing. Call it after the last row.
function check_parts(    sweep, i)
{
	for (sweep in n_rows_of)
		for (i = 1; i <= n_rows_of[sweep]; i++)
			if (!((sweep, i) in row_is_there))
				finish_with("row " i " of " n_rows_of[sweep] " of '" sweep "' is missing, " \
					"it belongs to part " (i - 1) % n_shards_of[sweep] + 1 "/" n_shards_of[sweep])
}

# Refuses text in a known column of numbers, also where the plot has no use for the column: the file is damaged. Call it
# after the plot's own checks, which know ranges.
function check_numbers(    i)
{
	for (i = 1; i <= n_columns; i++)
		if (i in number_at && field[i] != "" && !is_number(substr(field[i], (field[i] ~ /^-/) + 1)))
			complain("'" number_at[i] "' is '" field[i] "', must be empty or a number")
}

function is_number(text)
{
	return text ~ /^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/
}

# Tells whether a constant was fitted to the row's published value; a file without the column does not know.
function is_fitted_row(    text)
{
	text = "is_fitted" in at ? field[at["is_fitted"]] : ""
	if (text !~ /^(|yes|no)$/)
		complain("'is_fitted' is '" text "', must be yes, no or empty")
	return text == "yes"
}

# Bucket size of the row's system in bytes; empty for a system, or a file, without one.
function fuse_in_row(    fuse)
{
	fuse = "fuse_bytes" in at ? field[at["fuse_bytes"]] : ""
	if (fuse != "" && (!is_number(fuse) || fuse + 0 <= 0))
		complain("'fuse_bytes' is '" fuse "', must be empty or a number above 0")
	return fuse
}
