# Reads the CSV of psd-sim for one row of a table. Prints its line of points.csv.

FNR == 1 { read_head("scenario workers " column); next }

{
	read_fields()
	printf "%s,\"%s\",\"%s\",-,%s,%d,%s,%s,,,%s\n", source, field[at["scenario"]], label, method,
		field[at["workers"]], published, field[at[column]], use
}
