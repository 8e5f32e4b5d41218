#!/bin/sh
# tests/check-columns.sh ROOT: no line of the tree is longer than 120 columns; a tab ends at the next multiple of 8.
# Data may have longer ones: tables (CSV, .txt, those of READMEs), JSON, gzip, plots, networks of Caffe and ONNX, and
# corpora of fuzzing.
set -u
export LC_ALL=C
cd "$1" || exit 1

find docs engine sim real plots tests scenarios traces .ci Makefile README.md CONTRIBUTING.md CHANGELOG.md \
	-type f 2>/dev/null |
	grep -vE '\.(csv|gz|json|onnx|prototxt|svg|txt)$|^tests/fuzz/corpus/' | sort | awk '
		function columns_of(line,    n, i, part, columns) {
			gsub(/[\200-\277]/, "", line) # all but the first byte of a character
			n = split(line, part, "\t")
			for (i = 1; i < n; i++) columns += length(part[i]) - length(part[i]) % 8 + 8
			return columns + length(part[n])
		}
		{
			for (number = 1; (getline line <$0) > 0; number++) {
				if ($0 ~ /\.md$/ && line ~ /^\|/) continue
				columns = columns_of(line)
				if (columns <= 120) continue
				print $0 ":" number ": " columns " columns, must be 120 or fewer" > "/dev/stderr"
				n_bad++
			}
			close($0)
		}
		END {
			if (n_bad) exit 1
			if (!NR) {
				print "check-columns: there are no files" > "/dev/stderr"
				exit 1
			}
			print "check-columns: " NR " files have lines of 120 columns at most"
		}'
