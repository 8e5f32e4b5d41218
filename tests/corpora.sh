#!/bin/sh
# tests/corpora.sh BUILD NAME...: runs each fuzz target BUILD/corpora/NAME once on the files of tests/fuzz/corpus/NAME.
# CORPUS in the environment: another folder instead of tests/fuzz/corpus. A corpus without a target is an error.
set -u
export LC_ALL=C
build=$1
shift
corpus=${CORPUS:-tests/fuzz/corpus}
failed=0
n_files=0

for name in "$@"; do
	log=$build/corpora/$name.log
	# Parsers say in results what they refuse, so a limit is for loops without an end.
	if count=$(timeout 60 "$build/corpora/$name" "$corpus/$name" 2>"$log"); then
		n_files=$((n_files + count))
	else
		echo "corpora: $name fails on $(sed -n 's/^corpus: //p' "$log" | tail -n 1), see $log" >&2
		failed=1
	fi
done
for folder in "$corpus"/*; do
	case " $* " in
	*" ${folder##*/} "*) ;;
	*) echo "corpora: $folder has no fuzz target" >&2; failed=1 ;;
	esac
done
[ "$failed" -eq 0 ] || exit 1
echo "corpora: $# fuzz targets, $n_files files of their corpora"
[ "$n_files" -gt 0 ]
