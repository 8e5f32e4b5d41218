#!/bin/sh
# tests/stacks.sh compare|write BUILD: predicts every published value in scenarios/stacks/ and scenarios/poseidon-2015/
# by the stack of its system. engine/scenario/stack_points.inc, the record of the stacks, holds the results. `write`
# makes that file anew; `compare` prints the lines that differ, and fails if there are any.
set -eu
export LC_ALL=C
verb=$1
build=$2
points=engine/scenario/stack_points.inc
out=$build/stacks
mkdir -p "$out"

# rows SCENARIO: prints a row for each published value of a system that names a stack
rows() {
	"$build/psd-sim" --csv --quiet "$1" | awk -v "file=$1" '
		function value_of(text, key) {
			if (!match(text, key ": [^,}]*")) return ""
			return substr(text, RSTART + length(key) + 2, RLENGTH - length(key) - 2)
		}
		function unquoted(text) { gsub(/"/, "", text); return text }
		BEGIN {
			while ((getline line < file) > 0) {
				if (line ~ /^title: /) title = unquoted(substr(line, 8))
				if (line ~ /^  stack: /) of_cluster = value_of(line, "stack")
				if (line ~ /^published: /) published = substr(line, 12)
				if (line ~ /\{name: /) {
					name = value_of(line, "name")
					stack[name] = of_cluster
				}
				if (name != "" && line ~ /[ {]stack: / && line !~ /^  stack: /)
					stack[name] = value_of(line, "stack")
			}
			folder = file
			sub(/[^\/]*$/, "", folder)
			while ((getline line < (folder published)) > 0) {
				split(line, cells, ",")
				use[cells[1] "," cells[2]] = cells[5]
			}
			FS = ","
		}
		NR == 1 { for (i = 1; i <= NF; i++) behind[$i] = NF - i; next }
		{
			system_name = unquoted($(NF - behind["system"]))
			workers = $(NF - behind["workers"])
			rate = $(NF - behind["published_images_per_sec"])
			speedup = $(NF - behind["published_speedup"])
			if (rate == "" && speedup == "") next
			if (stack[system_name] == "" || stack[system_name] == "none") next
			predicted = rate != "" ? $(NF - behind["images_per_sec"]) : $(NF - behind["speedup"])
			printf "%s(\"%s\", \"%s: %s, %d worker%s\", %s, %.5g)\n",
				use[system_name "," workers] == "fit" ? "FITTED" : "CHECKED", stack[system_name],
				title, system_name, workers, workers == 1 ? "" : "s", rate != "" ? rate : speedup,
				predicted
		}'
}

echo "/* Written by tests/stacks.sh: a row for each published value that a stack predicts. */" >"$out/points.h"
for file in scenarios/stacks/*.yaml scenarios/poseidon-2015/*.yaml; do
	rows "$file"
done | sort -s -t '"' -k 2,2 | sed 's/", "/",\n\t"/' >>"$out/points.h"
if [ "$verb" = write ]; then
	cp "$out/points.h" "$points"
elif ! diff -u "$points" "$out/points.h"; then
	echo "stacks: the record of the stacks differs, tests/stacks.sh write makes it anew" >&2
	exit 1
fi
