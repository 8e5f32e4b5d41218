#!/bin/sh
# tests/check-docs.sh ROOT: a path of the tree that a README or a comment names is there, and so is an option that a
# README names. Paths count from the root or from the file's own folder. A part in capitals, NAME, stands for others.
# Paths in build/ are not looked at.
set -u
export LC_ALL=C
cd "$1" || exit 1
bad=$(mktemp) || exit 1
trap 'rm -f "$bad"' EXIT
wings='engine|sim|real|scenarios|traces|plots|tests|docs'

# check FILE: reads lines "NUMBER:PATH"; a pattern must match at least one file.
check() {
	folder=$(dirname "$1")
	awk '{ name = $0; gsub(/README|CONTRIBUTING|CHANGELOG|LICENSE/, "", name) } name !~ /:build\/|[A-Z][A-Z]/' |
		while IFS=: read -r line path; do
			found=
			for candidate in $path "$folder"/$path; do # a name with * is a pattern
				[ ! -e "$candidate" ] || found=yes
			done
			[ -n "$found" ] || echo "$1:$line: '$path' is not there"
		done
}

# In READMEs: text between backticks that has the form of a path, and targets of links.
find . -name '*.md' -not -path './build/*' -not -path './.git/*' | sed 's|^\./||' | sort | while read -r file; do
	# shellcheck disable=SC2016 # backticks are what is looked for
	grep -noE '`[A-Za-z0-9_.*-]+/[A-Za-z0-9_./*-]*`|`[A-Za-z0-9_-]+\.(c|h|cpp|hpp|sh|md|py|awk|gp)`' "$file" |
		tr -d '`' | check "$file"
	grep -noE '\]\([A-Za-z0-9_./-]+(#[a-z0-9-]+)?\)' "$file" | sed 's/](//; s/)$//; s/#.*//' | check "$file"
	[ "$file" != CHANGELOG.md ] || continue # it has old options, too
	case $file in
	docs/coming-from/*) skipped='s/^\|[^|]*\|/|/' ;;
	*) skipped= ;;
	esac
	# An option between backticks is one that a program prints. In docs/coming-from/ a row begins with another's.
	# shellcheck disable=SC2016 # backticks are what is looked for
	sed -E "$skipped" "$file" | grep -noE '`[^`]*`' |
		grep -vE 'build/psd-(real-)?tests|clang-format|nsys |tests/' | awk -F : '
		{
			while (match($0, /[` ]--[a-z-]+/)) {
				print $1, substr($0, RSTART + 1, RLENGTH - 1)
				$0 = $1 ":" substr($0, RSTART + RLENGTH)
			}
		}
	' | while read -r line option; do
		grep -qE -- "^(\| \`|  |  -., )${option}[ \`]" engine/OPTIONS.md plots/README.md 2>/dev/null ||
			echo "$file:$line: there is no option '$option'"
	done
done >>"$bad"

# In comments: words that begin with a wing and end as a file does.
find engine sim real plots tests scenarios traces Makefile .ci -type f 2>/dev/null |
	grep -vE '\.(md|csv|json)$|^tests/(data|fuzz/corpus|golden)/' | sort | while read -r file; do
	sed -E '\#^[[:space:]]*(//|/?\*|\#[^i])|[[:space:]]/\*#!s/.*//' "$file" |
		grep -noE "(^|[^A-Za-z0-9_./-])($wings)/[A-Za-z0-9_/-]+\.(c|h|cpp|hpp|sh|md|py|awk|gp|yaml)\>" |
		sed -E "s#^([0-9]+):[^A-Za-z0-9]?#\1:#" | check "$file"
done >>"$bad"

if [ -s "$bad" ]; then
	cat "$bad" >&2
	exit 1
fi
echo "check-docs: every path and option named in a README or a comment is there"
