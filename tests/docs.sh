#!/bin/sh
# tests/docs.sh write|check BUILD: parts of READMEs that programs print stand between two comments, <!-- NAME --> and
# <!-- end of NAME -->. `write` brings them up to date. `check` changes nothing, and fails if one is not up to date.
# DOCS in the environment: the folder of the READMEs, if it is not this one.
set -eu
export LC_ALL=C
build=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# part FILE NAME COMMAND...: writes or checks the part NAME of FILE, the lines that the command prints.
part() {
	file=${DOCS:-.}/$1 name=$2
	shift 2
	"$@" >"$work/part"
	awk -v name="$name" -v part="$work/part" '
		$0 == "<!-- end of " name " -->" { skip = 0; n++ }
		!skip { print }
		$0 == "<!-- " name " -->" { while ((getline line <part) > 0) print line; skip = 1; n++ }
		END { exit n != 2 }
	' "$file" >"$work/whole" || { echo "docs: $file has no place for '$name'" >&2; exit 1; }
	if cmp -s "$work/whole" "$file"; then return; fi
	if [ "$mode" = write ]; then
		cat "$work/whole" >"$file"
	else
		echo "docs: ${file#./}: '$name' is not what is printed now: make docs writes it" >&2
		status=1
	fi
}

mode=$1
# keys: the table of keys, with the first scenario that has each.
# shellcheck disable=SC2317 # called by part
keys() {
	awk -f tests/keys-said.awk scenarios/quickstart.yaml scenarios/examples/*.yaml scenarios/*.yaml \
		scenarios/[!em]*/*.yaml scenarios/execute/*.yaml >"$work/said"
	"$build/psd-sim" --markdown --keys | awk '
		FILENAME != "-" { if (!($1 in files)) files[$1] = substr($2, length("scenarios/") + 1); next }
		/^\| key/ { print $0 " example |"; next }
		/^\|-/ { print $0 "---|"; next }
		{ split($0, parts, "`"); key = parts[2] }
		!(key in files) { print "docs: no scenario has the key " key >"/dev/stderr"; exit 1 }
		{ print $0 " [" files[key] "](" files[key] ") |" }' "$work/said" -
}

part scenarios/README.md keys keys
part scenarios/README.md break-even tests/break-even.sh "$build"
part engine/result/README.md columns "$build/psd-sim" --markdown --columns
part engine/OPTIONS.md "options of psd-sim" "$build/psd-sim" --options
part engine/OPTIONS.md "options of psd-run" "$build/psd-run" --options
part engine/OPTIONS.md "options of psd-plot" "$build/psd-plot" --options
exit $status
