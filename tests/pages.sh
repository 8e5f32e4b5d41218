#!/bin/sh
# tests/pages.sh write|check BUILD [PAGE]...: executes the commands of docs/ and holds the pages to what they print.
#
# A comment <!-- prints FILTER --> stands between a block marked `sh` and an unmarked one. The second block is the
# output of the first one, through FILTER, a pipeline; without one it is the whole output. `excerpt REGEX...` is a
# filter: lines that match, and those that continue them with an indent of two. `write` brings these blocks up to date;
# `check` changes nothing and fails if one is not. Commands without such a comment are executed for later blocks, unless
# they have psd-run: `make check-docs` executes these. A number of two digits or more in the text must also stand in a
# block or between backticks of its page, or in a scenario that the page names. DOCS in the environment: the folder of
# docs/, if it is not this one.
set -u
export LC_ALL=C
mode=$1
build=$(cd "$2" && pwd)
tree=$PWD
docs=${DOCS:-.}
shift 2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
n_pages=0

# Commands are for build/ and the root of the tree; they find both here, whichever folder was built.
mkdir "$work/tree"
for part in "$tree"/*; do ln -s "$part" "$work/tree/"; done
rm -f "$work/tree/build"
ln -s "$build" "$work/tree/build"

cat >"$work/filters" <<'END'
excerpt() {
	awk '
		BEGIN { for (i = 1; i < ARGC; i++) { wanted[i] = ARGV[i]; ARGV[i] = "" } }
		{
			is_hit = is_shown && /^  [^ ]/
			for (i in wanted) if ($0 ~ wanted[i]) is_hit = 1
			is_shown = is_hit
		}
		is_shown' "$@"
}
END

# page FILE: prints the page with its blocks up to date.
page() {
	awk -v work="$work" '
		function refuse(text) {
			print "pages: " FILENAME ":" FNR ": " text > "/dev/stderr"
			has_failed = 1
		}
		function run() {
			if (has_run) return
			has_run = 1
			if (system("cd " work "/tree; sh -eu ../block >../printed 2>../errors </dev/null")) {
				refuse("a command above fails:")
				system("tail -n 3 " work "/errors >&2")
			}
		}
		state == "sh" && /^```$/ {
			close(work "/block")
			if (!has_psd_run) run()
			state = ""
			print
			next
		}
		/^```sh$/ { state = "sh"; has_run = has_psd_run = 0; printf "" > (work "/block"); print; next }
		state == "sh" { print > (work "/block"); if (/psd-run/) has_psd_run = 1; print; next }
		/^<!-- prints.* -->$/ {
			filter = $0
			sub(/^<!-- prints */, "", filter)
			sub(/ *-->$/, "", filter)
			print $0 "\n```"
			command = ". " work "/filters; <" work "/printed " (filter == "" ? "cat" : filter)
			n_lines = 0
			while ((command | getline line) > 0) { sub(/[ \t]+$/, "", line); print line; n_lines++ }
			if (close(command) || !n_lines) refuse("the filter leaves nothing of what is printed")
			print "```"
			state = "old"
			next
		}
		state == "old" { if (!/^```$/) refuse("an unmarked block must follow"); state = "old block"; next }
		state == "old block" { if (/^```$/) state = ""; next }
		{ print }
		END { exit has_failed }' "$1"
}

# numbers FILE: names each number in the text of a page that neither its blocks nor its scenarios have.
numbers() {
	# shellcheck disable=SC2046 # paths without spaces
	awk -v page="$1" '
		FILENAME != page { code = $0 }
		FNR == 1 { is_in = 0; n_times += FILENAME == page }
		FILENAME == page && /^```/ { is_in = !is_in; next }
		FILENAME == page && /^<!--/ { next }
		FILENAME == page {
			line = $0
			code = is_in ? line : ""
			if (!is_in) while (match(line, /`[^`]*`/)) {
				code = code " " substr(line, RSTART + 1, RLENGTH - 2)
				line = substr(line, 1, RSTART - 1) " " substr(line, RSTART + RLENGTH)
			}
			gsub(/\]\([^)]*\)/, "", line) # targets of links
			gsub(/[A-Za-z][A-Za-z-]*[0-9][A-Za-z0-9-]*|[0-9]+-bit|[0-9]+B/, "", line) # names, as ResNet-50
		}
		n_times < 2 {
			while (match(code, /[0-9][0-9.,]*[0-9]/)) {
				known[substr(code, RSTART, RLENGTH)]
				code = substr(code, RSTART + RLENGTH)
			}
			next
		}
		n_times == 2 && !is_in {
			while (match(line, /[0-9][0-9.,]*[0-9]/)) {
				number = substr(line, RSTART, RLENGTH)
				line = substr(line, RSTART + RLENGTH)
				if (!(number in known)) {
					print "pages: " page ":" FNR ": no block has the number " number > "/dev/stderr"
					has_failed = 1
				}
			}
		}
		END { exit has_failed }' "$1" $(grep -oE '^[^#]*scenarios/[A-Za-z0-9_./-]+\.yaml' "$1" |
		grep -oE 'scenarios/[A-Za-z0-9_./-]+\.yaml' | sort -u) "$1"
}

pages=${*:-$(cd "$docs" && find docs -name '*.md' | sort)}
for file in $pages; do
	n_pages=$((n_pages + 1))
	if ! page "$docs/$file" >"$work/page"; then
		status=1
	elif ! cmp -s "$work/page" "$docs/$file"; then
		if [ "$mode" = write ]; then
			cat "$work/page" >"$docs/$file"
		else
			echo "pages: $file: not what its commands print now: make docs writes it" >&2
			diff "$docs/$file" "$work/page" | head -n 6 >&2
			status=1
		fi
	fi
	numbers "$docs/$file" || status=1
done
[ "$status" -ne 0 ] || echo "pages: $n_pages pages of docs/ show what their commands print"
exit $status
