#!/bin/sh
# tests/validate.sh check|write BUILD [SOURCE]: predicts every published value of the sources in
# scenarios/published/sources.txt. Prints errors by source, stack and method, and with SOURCE each value of that one.
# Writes all values to BUILD/validate/points.csv, and a plot of them beside it. `check` fails if a source misses a bar,
# if bands hold too few values or too many, or if the record of the stacks, engine/scenario/stack_points.inc, differs
# from the predictions. `write` writes the record anew, and the plot to plots/validate.svg. SOURCES in the environment:
# another table of sources.
set -eu
export LC_ALL=C
verb=$1 build=$2 shown=${3-}
sources=${SOURCES:-scenarios/published/sources.txt}
record=engine/scenario/stack_points.inc
out=$build/validate
export PSD_PLOT_WORK="$out"
rm -rf "$out"
mkdir -p "$out"

# scenarios: "SOURCE FILE" for each scenario of a source.
scenarios() {
	grep -v '^#' "$sources" | while read -r source files _; do
		case $files in
		*.yaml)
			for file in $files; do
				[ -e "$file" ] || { echo "validate: $sources: $source has no '$file'" >&2; exit 1; }
				echo "$source $file"
			done
			;;
		esac
	done
}

# Two files for each scenario: SOURCE:NAME.show has stacks and methods of its systems, SOURCE:NAME.csv the predictions.
scenarios >"$out/scenarios"
# shellcheck disable=SC2016 # the inner shell expands them
xargs -r -P "$(nproc)" -L 1 sh -c '
	to=$1/$2:$(basename "$3" .yaml)
	"$0" show "$3" >"$to.show" && "$0" --csv --quiet "$3" >"$to.csv" || exit 255
' "$build/psd-sim" "$out" <"$out/scenarios"
set --
while read -r source file; do
	set -- "$@" "$out/$source:$(basename "$file" .yaml).show" "$out/$source:$(basename "$file" .yaml).csv"
done <"$out/scenarios"
[ $# -eq 0 ] || awk -f tests/common.awk -f tests/csv.awk -f tests/validate-points.awk "$@" >"$out/points"

# Tables of rows: each sets keys of the scenario beside its table.
grep -v '^#' "$sources" | while read -r source files _; do
	case $source,$files in
	one-gpu*) ;;
	*.csv)
		for file in $files; do
			awk -v source="$source" -f tests/common.awk -f tests/csv.awk -f tests/validate-rows.awk "$file"
		done
		;;
	esac
done >"$out/rows"
# shellcheck disable=SC2016 # the inner shell expands them
xargs -r -P "$(nproc)" -L 1 sh -c '
	build=$0 source=$1 file=$2 column=$3 published=$4 use=$5
	shift 5
	method=$(sed -n "s/.*sync: \([a-z0-9-]*\).*/\1/p" "$file")
	label=$(echo "$*" | sed "s|[^ ]*=||g; s|[^ ]*/||g; s|[.]yaml||")
	for pair; do set -- "$@" --set "$pair"; shift; done
	predicted=$("$build/psd-sim" --csv --quiet "$@" "$file") || exit 255
	echo "$predicted" | awk -v "source=$source" -v "label=$label" -v "method=$method" -v "published=$published" \
		-v "use=$use" -v "column=$column" -f tests/common.awk -f tests/csv.awk -f tests/validate-row.awk
' "$build" <"$out/rows" >"$out/row-points"
sort "$out/row-points" >>"$out/points"

# Single GPUs: rows that tests/published.sh has predicted.
if grep -q '^one-gpu' "$sources"; then
	tests/published.sh "$build" >"$out/one-gpu.txt"
	awk -F , -v OFS=, 'NR > 1 {
		source = $11 != "target" ? "one-gpu-other" : $2 == "" ? "one-gpu-convolutions" : "one-gpu-transformers"
		print source, $1 ($2 == "" ? "" : "-" $2), $3 " " $4 " batch " $5, "-", "one worker", 1, $7, $6, "", "",
			"fit"
	}' "$build/published/errors.csv" >>"$out/points"
fi
{
	echo "source,scenario,system,stack,method,workers,published,predicted,low,high,use"
	cat "$out/points"
} >"$out/points.csv"

status=0
awk -v shown="$shown" -v out="$out" -f tests/common.awk -f tests/csv.awk -f tests/validate.awk "$sources" \
	"$out/points.csv" || status=1

# The record: a row for each value that a stack predicts.
{
	echo "/* Written by tests/validate.sh: a row for each published value that a stack predicts. */"
	sort -s -k 1,1 "$out/record.txt" | sed 's/^[^ ]* //'
} >"$out/record.h"
if [ "$verb" = write ]; then
	cp "$out/record.h" "$record"
elif ! diff -u "$record" "$out/record.h"; then
	echo "validate: the record of the stacks differs, make stacks writes it anew" >&2
	status=1
fi

# plot TYPE: draws all values as an .svg or a .png.
plot() {
	printf '%s\n' "work = '$out'" "out = '$out/validate.$1'" "terminal_name = '$1'" | cat - tests/validate.gp |
		gnuplot 2>"$out/gnuplot.log" || { cat "$out/gnuplot.log" >&2; exit 1; }
}
plot svg
plot png
[ "$verb" != write ] || cp "$out/validate.svg" plots/validate.svg
exit $status
