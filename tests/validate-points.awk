# Reads, for each scenario, SOURCE:NAME.show of `psd-sim show`, then SOURCE:NAME.csv of its predictions. Prints a line
# of points.csv for each published value.

function cell(name) { return field[at[name]] }

FNR == 1 {
	source = FILENAME
	sub(/.*\//, "", source)
	sub(/:.*/, "", source)
}

FILENAME ~ /\.show$/ {
	if (FNR == 1)
		system_name = of_cluster = ""
	if ($0 ~ /^  - name: /) {
		system_name = substr($0, 12, length($0) - 12)
		gsub(/\\"/, "\"", system_name)
		stack_of[system_name] = of_cluster
	}
	if ($1 == "stack:" && system_name == "")
		of_cluster = $2
	else if ($1 == "stack:")
		stack_of[system_name] = $2
	if ($1 == "sync:")
		method_of[system_name] = $2
	next
}

FNR == 1 {
	read_head("scenario system workers images_per_sec speedup published_images_per_sec published_speedup is_fitted")
	next
}

{
	read_fields()
	if (cell("published_images_per_sec") cell("published_speedup") == "")
		next
	is_rate = cell("published_images_per_sec") != ""
	rate = cell("images_per_sec")
	predicted = is_rate ? rate : cell("speedup")
	name = cell("system")
	# A band is one of images/s; here it is one of the value.
	low = cell("low") == "" ? "" : cell("low") / rate * predicted
	high = cell("high") == "" ? "" : cell("high") / rate * predicted
	printf "%s,\"%s\",\"%s\",%s,%s,%d,%s,%s,%s,%s,%s\n", source, cell("scenario"), name,
		stack_of[name] == "" ? "-" : stack_of[name], method_of[name], cell("workers"),
		is_rate ? cell("published_images_per_sec") : cell("published_speedup"), predicted, low, high,
		cell("is_fitted") == "yes" ? "fit" : "check"
}
