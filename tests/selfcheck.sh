#!/bin/sh
# tests/selfcheck.sh BUILD CC SCENARIO: proves that the checks can fail, by giving each something that it must reject.
# shellcheck disable=SC2086 # of $cc, words are split
set -u
export LC_ALL=C
build=$1
cc=$2 # with words in front of it, such as ccache
scenario=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# must_reject WHAT PATTERN COMMAND...: the command has to fail and to say PATTERN.
must_reject() {
	what=$1
	pattern=$2
	shift 2
	if "$@" >"$work/log" 2>&1; then
		echo "selfcheck: $what: accepted, must be rejected"
		failed=$((failed + 1))
	elif ! grep -q "$pattern" "$work/log"; then
		echo "selfcheck: $what: rejected, but without saying '$pattern':"
		head -n 5 "$work/log"
		failed=$((failed + 1))
	else
		echo "selfcheck: $what: rejected as it must be"
		passed=$((passed + 1))
	fi
}

# include_from FOLDER HEADER: a tree of sources in which one file of FOLDER includes HEADER.
include_from() {
	rm -rf "$work/tree"
	mkdir -p "$work/tree/$1"
	echo "#include $2" >"$work/tree/$1/bad.c"
}

cp "$build/psd-selfcheck" "$work/psd-tests"
must_reject "a suite with tests that fail" "^0 passed, 2 failed$" tests/run.sh "$work" psd-tests --
must_reject "a test that fails, beside the sum" "^psd-tests: \[FAIL\] selfcheck" tests/run.sh "$work" psd-tests --
must_reject "a test that takes too long" "^psd-tests: \[TIME\] selfcheck" tests/run.sh "$work" psd-tests --

echo "slice psd-tests selfcheck/t*" >"$work/cases.txt"
must_reject "a gate that leaves every test to a slice" "^0 passed, 0 failed$" \
	env CASES=gate CASES_FILE="$work/cases.txt" tests/run.sh "$work" psd-tests --
must_reject "a slice with tests that fail" "^0 passed, 2 failed$" \
	env CASES=slice CASES_FILE="$work/cases.txt" tests/run.sh "$work" psd-tests --
echo "slice psd-tests selfcheck/gone*" >>"$work/cases.txt"
must_reject "a pattern without a case" "no case of psd-tests matches .*: selfcheck/gone" \
	env CASES=gate CASES_FILE="$work/cases.txt" tests/run.sh "$work" psd-tests --

# must_fail_with WHAT PATTERN ROW...: a table of checks with these rows, all of which run
must_fail_with() {
	what=$1
	pattern=$2
	shift 2
	printf '%s\n' "$@" >"$work/checks.txt"
	must_reject "$what" "$pattern" env CHECKS="$work/checks.txt" tests/checks.sh gate deep
}

must_fail_with "a step that fails" "^4 passed, 1 failed$" "gate one echo 3 passed, 0 failed" "gate two false"
must_fail_with "a test that fails in a step" "^4 passed, 2 failed$" "gate one echo 3 passed, 0 failed" \
	"gate two echo 0 passed, 1 failed; false"
must_fail_with "a slice that fails" "^1 passed, 1 failed$" "gate one true" "deep two false" "deep three true"
must_reject "a slice that is not there" "has 2 slices, there is no slice '3'" \
	env CHECKS="$work/checks.txt" tests/checks.sh 3

mkdir -p "$work/corpora" "$work/corpus/one"
echo abc >"$work/corpus/one/input"
cat >"$work/corpora/one" <<'EOF'
#!/bin/sh
echo "corpus: $1/input" >&2
kill -SEGV $$
EOF
chmod +x "$work/corpora/one"
must_reject "an input that breaks a parser" "one fails on .*corpus/one/input" \
	env CORPUS="$work/corpus" tests/corpora.sh "$work" one
must_reject "a corpus without a fuzz target" "corpus/one has no fuzz target" \
	env CORPUS="$work/corpus" tests/corpora.sh "$work"

echo 'struct unknown f(size_t n);' >"$work/bad.h"
must_reject "a header that needs another one" "unknown type name .size_t." \
	make --no-print-directory check-headers HEADERS="$work/bad.h"

mkdir -p "$(dirname "$work/golden/$scenario")"
sed '$s/[0-9]\([^0-9]*\)$/x\1/' "tests/golden/$scenario.csv" >"$work/golden/$scenario.csv"
must_reject "a golden file with one character changed" "golden: differs" \
	env GOLDEN_DIR="$work/golden" tests/golden.sh compare "$build" "$scenario"

mkdir "$work/linked"
cp "$build/psd-sim" "$work/linked/psd-run"
must_reject "a program that needs more than the C library" "needs libsimgrid" tests/static.sh "$work/linked"

echo '#include <string.h>
void f(char *to, const char *from);
void f(char *to, const char *from) { strcpy(to, from); }' >"$work/banned.c"
must_reject "a call of strcpy" strcpy \
	$cc -I. -Werror -include engine/base/banned.h -c -o "$work/banned.o" "$work/banned.c"

for include in '<simgrid/engine.h>' '<pthread.h>' '<sys/socket.h>' '"sim/network/network.h"' '<yaml.h>'; do
	include_from engine "$include"
	must_reject "engine with $include" "engine/bad.c:1:" tests/check-layers.sh "$work/tree"
done
include_from engine/base '"engine/cost/cost.h"'
must_reject "a folder that knows one after it" "engine/base/bad.c:1:" tests/check-layers.sh "$work/tree"
include_from engine/model '"engine/model/prototxt.h"'
must_reject "a graph that knows a reader" "engine/model/bad.c:1:" tests/check-layers.sh "$work/tree"
include_from engine/more '"engine/base/text.h"'
must_reject "a folder without a place" "engine/more/bad.c:1:" tests/check-layers.sh "$work/tree"
include_from sim '"real/net/wire.h"'
must_reject 'sim with "real/net/wire.h"' "sim/bad.c:1:" tests/check-layers.sh "$work/tree"
include_from plots '"sim/network/network.h"'
must_reject 'plots with "sim/network/network.h"' "plots/bad.c:1:" tests/check-layers.sh "$work/tree"
include_from sim '"plots/figure.h"'
must_reject 'sim with "plots/figure.h"' "sim/bad.c:1:" tests/check-layers.sh "$work/tree"
include_from real '<cuda_runtime.h>'
must_reject 'C with <cuda_runtime.h>' "real/bad.c:1:" tests/check-layers.sh "$work/tree"
include_from real/device/gpu '"real/device/cuda/dnn.h"'
must_reject 'a header of calls of cuDNN' "real/device/gpu/bad.c:1:" tests/check-layers.sh "$work/tree"

mkdir "$work/empty"
must_reject "a tree without files" "there are no files" tests/check-columns.sh "$work/empty"
# A tab and 113 characters in each kind of file.
for file in engine/a.c engine/a.h sim/a.cpp sim/a.hpp real/a.cu plots/a.c tests/a.awk tests/a.gp scenarios/a.yaml \
	scenarios/README.md tests/a.sh tests/a.py tests/tsan.supp Makefile README.md CONTRIBUTING.md CHANGELOG.md \
	.ci/run; do
	rm -rf "$work/tree"
	mkdir -p "$(dirname "$work/tree/$file")"
	printf '\t%113s\n' x >"$work/tree/$file"
	must_reject "a line of 121 columns in $file" "^$file:1: 121 columns" tests/check-columns.sh "$work/tree"
done

must_reject "a tree without texts" "there are no files" tests/check-words.sh "$work/empty"
# must_reject_words FILE LINE TEXT: line LINE of TEXT, in FILE, begins as no text does. % ends a line, @ is a quote
# and ~ a #.
must_reject_words() {
	rm -rf "$work/tree"
	mkdir -p "$(dirname "$work/tree/$1")"
	printf '%s\n' "$3" | tr '%@~' '\n"#' >"$work/tree/$1"
	must_reject "$1 with $3" "$1:$2: " tests/check-words.sh "$work/tree"
}
must_reject_words a.c 1 '/* Of a ring. */'
must_reject_words a.c 1 'int a; /* of a ring */'
must_reject_words a.c 2 '/* Sums a ring.% * Who calls it waits. */'
must_reject_words a.h 2 '/* Sums. So% * many rings. */'
must_reject_words a.h 2 '/* Sums a ring% * bytes: as many as it has */'
must_reject_words a.cu 1 'int a; // whose ring'
must_reject_words a.cpp 1 'char *a = @that of a ring@;'
must_reject_words a.hpp 1 'char *a = @b: what a ring has@;'
must_reject_words a.c 1 'char *a = @a ring is none@;'
must_reject_words a.c 1 'char *a = @a ring is no circle@;'
must_reject_words a.sh 1 'echo @of a ring@'
must_reject_words a.sh 1 'echo @ring, turn@ @of a ring@'
must_reject_words a.awk 1 'a = 1 ~ what a ring has'
must_reject_words a.sh 2 'cat <<EOF%t    --ring    of a ring'
must_reject_words a.yaml 1 'a: 1 ~ of a ring'
must_reject_words README.md 1 'A ring turns. What is in it moves.'
must_reject_words README.md 1 '* **ring**: what turns'
must_reject_words README.md 2 '| ring |%| of a ring |'
for subject in 'Late updates' 'real: who is lost' 'net: mended the ring' 'net: the ring turns' 'net: turn.' \
	'net: turn the ring, and also everything that is not a ring yet'; do
	must_reject "a commit '$subject'" "commit subject: " tests/check-words.sh --subject "$subject"
done

# must_reject_budget WHAT PATTERN TEXT: of a tree with three lines in engine/ and TEXT as its budget.
must_reject_budget() {
	rm -rf "$work/tree"
	mkdir -p "$work/tree/engine" "$work/tree/tests"
	printf '1\n2\n3\n' >"$work/tree/engine/a.c"
	printf '%b\n' "$3" >"$work/tree/tests/budget.txt"
	must_reject "$1" "$2" tests/check-budget.sh "$work/tree"
}
must_reject_budget "a wing above its budget" "engine has 3 lines, 1 more than its 2" "engine 2"
must_reject_budget "a wing without a budget" "tests/budget.txt has no line for engine" "sim 5"
must_reject_budget "a budget without a number" "tests/budget.txt:2: .*must be a wing and its most lines" "engine 5\nsim"
must_reject_budget "a wing with two budgets" "tests/budget.txt:2: \"engine\" has a line above" "engine 5\nengine 9"
must_reject "a tree without a budget" "tests/budget.txt is not there" tests/check-budget.sh "$work/empty"

# with_cell FILE COLUMN TEXT: records of which the first row of FILE.csv has another cell, or lacks its last one
records=traces/measured/two-xeon-cores
with_cell() {
	rm -rf "$work/measured"
	mkdir -p "$work/measured/machine"
	cp "$records"/*.csv "$work/measured/machine"
	awk -F , -v OFS=, -v column="$2" -v text="$3" '
		/^nodes,/ { line = NR + 1 }
		NR == line && column == "last" { NF-- }
		NR == line && column != "last" { $column = text }
		{ print }
	' "$records/$1.csv" >"$work/measured/machine/$1.csv"
	line=$(($(grep -n '^nodes,' "$records/$1.csv" | cut -d : -f 1) + 1))
}

# estimates of twice the time
mkdir -p "$work/doubled"
cat >"$work/doubled/psd-sim" <<EOF
#!/bin/sh
case "\$*" in
*--estimate*) "$build/psd-sim" "\$@" | awk -F, -v OFS=, 'NR > 1 { \$7 *= 2 } 1' ;;
*) exec "$build/psd-sim" "\$@" ;;
esac
EOF
chmod +x "$work/doubled/psd-sim"
must_reject "estimates on racks that take twice as long" "ring .* 100.00" tests/racks.sh "$work/doubled"

# sources BARS: a table of one source with these bars of median, mean and worst
sources() {
	echo "poseidon-2015 scenarios/poseidon-2015/*.yaml $1" >"$work/sources.txt"
}
# must_miss WHAT PATTERN
must_miss() { must_reject "$1" "$2" env SOURCES="$work/sources.txt" tests/validate.sh check "$build" selfcheck; }

sources "10 - -"
must_miss "a source above the bar of its median" "poseidon-2015: median error 11.0 %, above its bar of 10 %"
sources "- - 12"
must_miss "a source above the bar of its worst value" "poseidon-2015: worst error 12.1 %, above its bar of 12 %"
sources "- 5 -"
must_miss "a source above the bar of its mean" "poseidon-2015: mean error 11.0 %, above its bar of 5 %"
sources "20 20 20"
must_miss "a record of stacks that lacks values" "the record of the stacks differs"
sources "20"
must_miss "a source without its bars" "sources.txt:1: a source has 3 words"
echo "horovod-2017 scenarios/published/horovod-2017/*.yaml - - -" >"$work/sources.txt"
must_miss "bands that hold two thirds of the values" "bands must hold 70 to 90 %"
echo "gone scenarios/gone/*.yaml 9 9 9" >"$work/sources.txt"
must_miss "a source without scenarios" "gone has no 'scenarios/gone/"
mkdir -p "$work/rows"
sed "s|[.][.]/[.][.]|$PWD/scenarios|" scenarios/published/nvidia-bert/v100.yaml >"$work/rows/v100.yaml"
sed -n '/^model/p; /^512,mixed,8,256,16/p' scenarios/published/nvidia-bert/v100.csv >"$work/rows/v100.csv"
sources "- - -"
echo "bert $work/rows/v100.csv - - 4" >>"$work/sources.txt"
must_miss "a row above the bar of its worst value" "bert: worst error 5.4 %, above its bar of 4 %"
sed 's/images_per_sec/rate/' "$work/rows/v100.csv" >"$work/rows/rate.csv"
echo "bert $work/rows/rate.csv - - -" >>"$work/sources.txt"
must_miss "a table of rows without published values" "column 'images_per_sec' or 'tokens_per_sec' is missing"

# must_refuse_record WHAT PATTERN
must_refuse_record() { must_reject "$1" "$2" env MEASURED_DIR="$work/measured" tests/accuracy.sh "$work"; }

for seconds in abc 0 -1 nan 1x; do
	with_cell mlp 4 "$seconds"
	must_refuse_record "a run on record of '$seconds' s" "machine/mlp.csv:$line: 'iteration_sec' is '$seconds'"
done
with_cell alexnet last ""
must_refuse_record "a run on record without its last cell" "machine/alexnet.csv:$line: [0-9]* cells, must be"
with_cell alexnet 9 ""
must_refuse_record "a layer on record without its time" "machine/alexnet.csv:$line: '.*forward_us' is ''"
with_cell mlp 1 two
must_refuse_record "a word as a number of nodes" "machine/mlp.csv:$line: 'nodes' is 'two'"
rm "$work/measured/machine/mlp.csv" "$work/measured/machine/alexnet.csv"
must_refuse_record "too few runs on record" "measured has [0-9]* runs on record, must be 100 or more"

rm -rf "$work/tree"
mkdir -p "$work/tree/real"
# shellcheck disable=SC2016 # no expansion
echo 'see `real/gone.c`' >"$work/tree/README.md"
must_reject "a README with a path that is not there" "README.md:1: 'real/gone.c'" tests/check-docs.sh "$work/tree"
# shellcheck disable=SC2016 # no expansion
echo 'say `psd-sim --gone`' >"$work/tree/README.md"
must_reject "a README with an option that is not there" "README.md:1: there is no option '--gone'" \
	tests/check-docs.sh "$work/tree"
# shellcheck disable=SC2016 # no expansion
printf '```sh\ntrue\nbuild/psd-sim --gone\n```\n' >"$work/tree/README.md"
must_reject "a README with a command that fails" "README.md: a command fails" \
	env ONLY="$work/tree/README.md" tests/readme-commands.sh "$build"
# shellcheck disable=SC2016 # no expansion
printf '```\nbuild/psd-sim a.yaml\n```\n' >"$work/tree/README.md"
must_reject "a README with a command that nobody tries" "README.md:2: this command" \
	env ONLY="$work/tree/README.md" tests/readme-commands.sh "$build"
rm "$work/tree/README.md"
mkdir -p "$work/docs/scenarios"
# shellcheck disable=SC2016 # no expansion
sed 's/| `title` |/| `name` |/' scenarios/README.md >"$work/docs/scenarios/README.md"
for part in engine plots; do cp -r "$part" "$work/docs/"; done
must_reject "a reference that is old" "scenarios/README.md: 'keys' is not what is printed now" \
	env DOCS="$work/docs" tests/docs.sh check "$build"
sed 's/| fp16 | [0-9.]* ms/| fp16 | 9 ms/' scenarios/README.md >"$work/docs/scenarios/README.md"
must_reject "a table of compression that is old" "scenarios/README.md: 'break-even' is not what is printed now" \
	env DOCS="$work/docs" tests/docs.sh check "$build"
mkdir -p "$work/pages/docs"
# shellcheck disable=SC2016 # no expansion
printf '```sh\necho 12\n```\n<!-- prints -->\n```\n13\n```\n' >"$work/pages/docs/a.md"
must_reject "a page with an output that is old" "docs/a.md: not what its commands print now" \
	env DOCS="$work/pages" tests/pages.sh check "$build" docs/a.md
# shellcheck disable=SC2016 # no expansion
printf '```sh\necho 12\n```\n<!-- prints -->\n```\n12\n```\nThese are 13.\n' >"$work/pages/docs/a.md"
must_reject "a page with a number that no command prints" "docs/a.md:8: no block has the number 13" \
	env DOCS="$work/pages" tests/pages.sh check "$build" docs/a.md
# shellcheck disable=SC2016 # no expansion
printf '```sh\nfalse\n```\n<!-- prints -->\n```\n```\n' >"$work/pages/docs/a.md"
must_reject "a page with a command that fails" "docs/a.md:3: a command above fails" \
	env DOCS="$work/pages" tests/pages.sh check "$build" docs/a.md
printf "%s\n" "one: One" "    echo 1 >build/one.csv" "    cp build/one.csv build/one.svg" "Text." \
	>"$work/pages/docs/gallery.txt"
printf '%s\n' '<!-- gallery -->' '<!-- end of gallery -->' >"$work/pages/docs/gallery.md"
must_reject "a picture that is not drawn" "docs/pictures/one.svg is not there" \
	env DOCS="$work/pages" tests/gallery.sh check "$build"
mkdir "$work/pages/docs/pictures"
echo 2 >"$work/pages/docs/pictures/one.svg"
must_reject "a gallery that is old" "docs/gallery.md is not what" \
	env DOCS="$work/pages" tests/gallery.sh check "$build"
echo '/* as in engine/gone.h */' >"$work/tree/real/a.c"
must_reject "a comment with a path that is not there" "real/a.c:1: 'engine/gone.h'" tests/check-docs.sh "$work/tree"

echo '#include <stdio.h>
void f(void);
void f(void) { printf("%d", 1); }' >"$work/prints.c"
$cc -c -o "$work/prints.o" "$work/prints.c"
if command -v groff >/dev/null; then
	mkdir -p "$work/shared/share/man/man1"
	printf '.TH a 1\n.XX\n' >"$work/shared/share/man/man1/a.1"
	must_reject "a manual page with a macro that is not there" "a.1: .*macro 'XX' not defined" \
		tests/share.sh "$work/shared"
fi
must_reject "an engine that prints" "calls printf" tests/check-layers.sh "$work/tree" "$work/prints.o"

cat >"$work/race.c" <<'EOF'
#include <pthread.h>
#include <stddef.h>

static int seconds;

static void *count(void *unused)
{
	seconds++;
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, count, NULL) != 0)
		return 0;
	seconds++;
	return pthread_join(thread, NULL);
}
EOF
$cc -g -fsanitize=thread -o "$work/race" "$work/race.c"
must_reject "a data race" "SUMMARY: ThreadSanitizer: data race .*race.c" \
	env TSAN_OPTIONS="suppressions=tests/tsan.supp" "$work/race"

cat >"$work/leaking" <<'EOF'
#!/bin/sh
echo '==7==ERROR: LeakSanitizer: detected memory leaks
[====] Synthesis: Tested: 1 | Passing: 1 | Failing: 0 | Crashing: 0'
EOF
chmod +x "$work/leaking"
must_reject "a leak" "^1 passed, 1 failed$" tests/run.sh "$work" leaking --

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
