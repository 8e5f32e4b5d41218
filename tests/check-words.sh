#!/bin/sh
# tests/check-words.sh [--who] [FOLDER|FILE]...: no text begins with what, who, whose, of, that of, so many or as many.
# A text is a comment, a string, or a paragraph, item or cell of Markdown. Each sentence in it counts, and so does the
# part behind "name: ". A message says what is expected, never that its subject "is none" or "is no ...".
#
# Without arguments: the whole tree and the subject of the last commit. --who lists each who, whose and whom as well,
# as hints that change nothing. --subject TEXT checks the subject of a commit alone.
#
# The check judges beginnings, not sense. A string that begins with a space or a comma goes on with another one, and a
# string of one word is a key: neither is a text.
set -u
export LC_ALL=C

# check_subject TEXT: "area: verb ...". A machine can't know an imperative, but it knows some words that are none.
check_subject() {
	printf '%s\n' "$1" | awk '
		function refuse(why) { print "commit subject: " why ": " $0 > "/dev/stderr"; has_failed = 1 }
		NR > 1 { next }
		length($0) > 60 { refuse(length($0) " characters, must be 60 or fewer") }
		/\.$/ { refuse("ends with a full stop") }
		!/^[a-z0-9][a-z0-9_,.\/ -]*: [^ ]/ { refuse("must be \"area: verb ...\""); exit }
		{
			verb = $0; sub(/^[^:]*: /, "", verb); sub(/ .*/, "", verb)
			if (verb ~ /^(a|an|the|what|who|whose|of|that|it|its|psd|all|each|every|no|one|is|are)$/ ||
			    verb ~ /(ing|ed|s)$/ && verb !~ /ss$/ &&
			    verb !~ /^(bring|string|embed|feed|need|seed|speed|exceed|shed|alias|bias|focus)$/)
				refuse("must begin with a verb in the imperative, \"" verb "\" is not one")
		}
		END { exit has_failed }'
}

with_hints=
is_whole=yes
case ${1:-} in
--subject)
	check_subject "${2:-}"
	exit
	;;
--who)
	with_hints=yes
	shift
	;;
esac
[ $# -eq 0 ] || is_whole=
[ $# -gt 0 ] || set -- docs engine sim real plots tests scenarios traces .ci Makefile ./*.md

# In a clone, files that git knows or that are new; elsewhere all.
files() {
	git ls-files --cached --others --exclude-standard -- "$@" 2>/dev/null || find "$@" -type f
}

files "$@" | sort -u | grep -E '\.(c|h|cu|cpp|hpp|sh|awk|gp|md|yaml)$|(^|/)(psd-plot|Makefile|\.ci/run)$' |
	grep -vE '(^|/)(tests/fuzz/corpus|traces/.*\.yaml)' | awk -v with_hints="$with_hints" '
	function report(text) {
		sub(/[ \t]+$/, "", text)
		print file ":" number ": " substr(text, 1, 100) > "/dev/stderr"
		n_bad++
	}

	function is_refused(text) {
		return tolower(substr(text, 1, 12)) ~ /^(what|whose|who|of|that of|so many|as many)([^a-z0-9_-]|$)/
	}

	# The part behind "name: ", or "" without a name of three words at most.
	function behind_label(text) {
		if (!match(text, /^[^ ,;:()]+(,? [^ ,;:()]+)?(,? [^ ,;:()]+)?: +/)) return ""
		if (text ~ /^["`]/ && substr(text, 2, RLENGTH) !~ /["`]/) return "" # a quotation goes on
		text = substr(text, RSTART + RLENGTH)
		sub(/^[(*_]+/, "", text)
		return text
	}

	# A sentence begins here. "that" alone at the end of a line waits for the next line.
	function begin(text,    rest) {
		if (is_refused(text)) report(text)
		else if (is_refused(behind_label(text))) report(text)
		else if (text ~ /^([Tt]hat|[Ss]o|[Aa]s)[ \t]*$/) carried = text
	}

	# A line of a text. at_start: 1 its next word begins it, 2 it begins a sentence if it is capital, 0 neither.
	function scan(text, is_line,    rest, bare) {
		if (with_hints && tolower(text) ~ /(^|[^a-z_])(who|whose|whom)([^a-z_]|$)/)
			print file ":" number ": hint: " substr(text, 1, 100)
		if (carried != "") { sub(/^[ \t]+/, "", text); text = carried " " text; carried = ""; at_start = 1 }
		bare = text
		sub(/^[^A-Za-z0-9%$\\"`]+/, "", bare) # a text that begins with a quotation is none of ours
		if (bare == "") return
		if (at_start == 1 || at_start == 2 && bare ~ /^[A-Z]/) begin(bare)
		else if (is_line && is_refused(behind_label(bare))) report(bare)
		rest = bare
		while (match(rest, /[.?!]["\047)`*_]* +[(*_[]*[A-Z]|; [A-Za-z_*`]+: /)) {
			if (substr(rest, RSTART, 1) == ";") rest = substr(rest, RSTART + 2)
			else rest = substr(rest, RSTART + RLENGTH - 1)
			begin(rest)
		}
		at_start = text ~ /[.?!]["\047)`*_]*[ \t]*$/ ? 2 : 0
	}

	# ---- strings ----

	# A piece of a literal, without its quotes. is_more: it goes on with the piece before it.
	function string(text, is_more) {
		if (text ~ /(^|[^a-z])is (none([^a-z]|$)|no )/ && text !~ /there is no/) report(text)
		gsub(/\\[nt]/, " ", text)
		gsub(/\\"/, "\"", text)
		at_start = is_more ? string_start : 1
		carried = is_more ? string_carried : ""
		if (!is_more) {
			n_texts++
			if (text ~ /^[ ,.;:)]/ || text !~ /[^ ] +[^ ]/) at_start = 0
		}
		if (text != "") scan(text, 0)
		string_start = at_start
		string_carried = carried
		carried = ""
	}

	# ---- C and C++ ----

	function comment_line(text) {
		sub(/^[ \t]*\*? ?/, "", text)
		if (text ~ /^[ \t]*$/ || text ~ /^[ \t]*[-*] /) at_start = 1
		scan(text, 1)
	}

	function c_line(line,    end, piece) {
		if (!in_comment && line ~ /^[ \t]*#[ \t]*(include|error)/) return
		if (line !~ /^[ \t]*\/\//) had_slashes = 0
		while (line != "") {
			if (in_comment) {
				end = index(line, "*/")
				comment_line(end ? substr(line, 1, end - 1) : line)
				if (!end) return
				in_comment = 0
				carried = ""
				line = substr(line, end + 2)
			}
			if (!match(line, /\/[*\/]|["\047]/)) {
				gap = gap line
				return
			}
			piece = substr(line, RSTART, 2)
			gap = gap substr(line, 1, RSTART - 1)
			line = substr(line, RSTART)
			if (piece == "/*") {
				in_comment = 1
				at_start = 1
				carried = ""
				n_texts++
				line = substr(line, 3)
			} else if (piece == "//") {
				if (!had_slashes) { at_start = 1; carried = ""; n_texts++ }
				had_slashes = gap ~ /^[ \t]*$/ || had_slashes
				comment_line(substr(line, 3))
				return
			} else if (match(line, /^"([^"\\]|\\.)*"/)) {
				piece = substr(line, 2, RLENGTH - 2)
				line = substr(line, RLENGTH + 1)
				string(piece, gap ~ /^[ \t\\]*([A-Za-z_][A-Za-z0-9_]*)?[ \t\\]*$/)
				gap = ""
			} else if (match(line, /^\047([^\047\\]|\\.)+\047/)) {
				line = substr(line, RLENGTH + 1)
				gap = gap "0,"
			} else {
				line = substr(line, 2)
				gap = gap ","
			}
		}
	}

	# ---- scripts, settings and the Makefile ----

	function hash_line(line, is_script,    all, column, mark, piece) {
		all = line
		column = 0
		if (is_script && line ~ /<<-?\047?EOF/) in_help = 1
		else if (line == "EOF") in_help = 0
		else if (in_help && match(line, /^[a-z-]+ ? ? ? ? ? ? ?[^ ].*[^ ]  +/)) { # an option, then its text
			at_start = 1
			n_texts++
			scan(substr(line, RLENGTH + 1), 0)
			return
		}
		while (match(line, /(^|[ \t])#+ |"|(echo|printf|print) \047/)) {
			mark = substr(line, RSTART + RLENGTH - 1, 1)
			line = substr(line, RSTART + RLENGTH)
			if (mark == "\"" || mark == "\047") {
				if (!match(line, mark == "\"" ? "^([^\"\\\\]|\\\\.)*\"" : "^[^\047]*\047")) continue
				piece = substr(line, 1, RLENGTH - 1)
				line = substr(line, RLENGTH + 1)
				if (is_script) string(piece, 0)
			} else {
				column = length(all) - length(line)
				if (column != comment_column) { at_start = 1; n_texts++ } else at_start = comment_start
				if (line ~ /^[ \t]*[-*] /) at_start = 1
				carried = column == comment_column ? comment_carried : ""
				scan(line, 1)
				comment_start = at_start
				comment_carried = carried
				carried = ""
				break
			}
		}
		if (!column && all ~ /^[ \t]*#+$/) { comment_start = 1; return } # a paragraph ends
		comment_column = column
	}

	# ---- Markdown ----

	function markdown_cells(line,    n, i, cell) {
		if (line ~ /^[ \t|:-]+$/) return
		gsub(/\\\|/, "/", line)
		n = split(line, cell, "|")
		for (i = 2; i <= n; i++) { at_start = 1; carried = ""; n_texts++; scan(cell[i], 0) }
	}

	function markdown_line(line) {
		if (line ~ /^[ \t]*```/) in_code = !in_code
		if (in_code || line ~ /^[ \t]*(```|<!--)/) { at_start = 1; return }
		if (line ~ /^[ \t]*$/) { at_start = 1; carried = ""; is_paragraph = 0; return }
		if (line ~ /^\|/) { markdown_cells(line); at_start = 1; return }
		if (line ~ /^#/ || line ~ /^[ \t>]*([-*]|[0-9]+\.) /) { at_start = 1; is_paragraph = 0 }
		sub(/^[ \t>]*([-*]|[0-9]+\.) /, "", line)
		if (!is_paragraph++) n_texts++
		if (line ~ /^#/) is_paragraph = 0
		if (line ~ /^#.*\?$/) return # a question as a heading
		scan(line, 1)
		if (!is_paragraph) at_start = 1
	}

	{
		file = $0
		at_start = 1
		in_comment = in_code = in_help = had_slashes = is_paragraph = comment_column = string_start = 0
		carried = string_carried = comment_carried = ""
		gap = ","
		for (number = 1; (getline line <file) > 0; number++) {
			if (file ~ /\.(c|h|cu|cpp|hpp)$/) c_line(line)
			else if (file ~ /\.md$/) markdown_line(line)
			else hash_line(line, file !~ /\.yaml$/)
		}
		close(file)
	}

	END {
		if (!NR) {
			print "check-words: there are no files" > "/dev/stderr"
			exit 1
		}
		if (n_bad) {
			print "check-words: " n_bad " of " n_texts " texts begin with a word that no text begins with" \
				> "/dev/stderr"
			exit 1
		}
		print "check-words: " n_texts " texts"
	}'
status=$?

if [ -n "$is_whole" ] && subject=$(git log -1 --no-merges --format=%s 2>/dev/null) && [ -n "$subject" ]; then
	check_subject "$subject" || status=1
fi
exit "$status"
