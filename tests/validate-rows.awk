# Reads a table of rows beside a scenario of its name. Columns with a dot are keys of the scenario; images_per_sec or
# tokens_per_sec is the published value, and use says whether something was fitted to it. Prints a line for each row:
# source, scenario, column and published value, use, and the keys with their values.

/^#/ { next }

!has_head {
	has_head = 1
	read_head("use")
	column = "tokens_per_sec" in at ? "tokens_per_sec" : "images_per_sec"
	if (!(column in at))
		complain("column 'images_per_sec' or 'tokens_per_sec' is missing")
	scenario = FILENAME
	sub(/csv$/, "yaml", scenario)
	for (name in at)
		name_of[at[name]] = name
	next
}

{
	read_fields()
	printf "%s %s %s %s %s", source, scenario, column, field[at[column]], field[at["use"]]
	for (i = 1; i <= n_columns; i++)
		if (name_of[i] ~ /\./)
			printf " %s=%s", name_of[i], field[i]
	print ""
}

END {
	if (has_failed)
		exit 2
}
