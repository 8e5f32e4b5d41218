#!/bin/sh
# tests/check-budget.sh [ROOT]: no wing of the tree has more lines than tests/budget.txt gives it. Lines are those that
# people write: comments and empty lines count; results, plots, recorded data, networks and fuzzing corpora do not.
# Markdown files count as docs, in whichever folder they are.
set -u
export LC_ALL=C
cd "${1:-.}" || exit 1
if [ ! -f tests/budget.txt ]; then
	echo "check-budget: tests/budget.txt is not there" >&2
	exit 1
fi

# In a clone, files that git knows; elsewhere all.
files() {
	git ls-files 2>/dev/null | grep . || find . -type f | sed 's|^\./||'
}

files | grep -vE '\.(csv|json|onnx|prototxt|txt|dict|supp|svg)$|^tests/(data|fuzz/corpus|golden)/|^build/' |
	grep -E '^(engine|sim|real|plots|tests|scenarios)/|\.md$' |
	while read -r file; do
		[ ! -f "$file" ] || printf '%s\0' "$file"
	done | xargs -0 -r wc -l | awk '
		function refuse(text) {
			print "check-budget: " text > "/dev/stderr"
			has_failed = 1
		}
		FILENAME == "-" {
			if ($2 == "total") next
			wing = $2 ~ /\.md$/ ? "docs" : substr($2, 1, index($2, "/") - 1)
			lines[wing] += $1
			n_lines += $1
			next
		}
		/^#/ || /^$/ { next }
		NF != 2 || $2 !~ /^[0-9]+$/ {
			refuse(FILENAME ":" FNR ": \"" $0 "\", must be a wing and its most lines")
			next
		}
		$1 in most { refuse(FILENAME ":" FNR ": \"" $1 "\" has a line above") }
		{ most[$1] = $2 }
		END {
			if (!n_lines) refuse("there are no files")
			for (wing in lines)
				if (!(wing in most)) refuse("tests/budget.txt has no line for " wing)
			for (wing in most) {
				total += most[wing]
				if (lines[wing] + 0 > most[wing])
					refuse(wing " has " lines[wing] " lines, " lines[wing] - most[wing] \
						" more than its " most[wing] " (tests/budget.txt)")
			}
			if (has_failed) exit 1
			print "check-budget: " n_lines " lines, of " total
		}' - tests/budget.txt
