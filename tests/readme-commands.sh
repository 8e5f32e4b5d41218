#!/bin/sh
# tests/readme-commands.sh BUILD: runs every command of every README: the blocks marked `sh` of one file in turn, as one
# script, in a folder that has the tree's own folders and where files may be left. A `make` command is only asked
# whether it has such a target. A command in an unmarked block is refused, unless a word in capitals in it stands for
# others. A replay that this machine is too busy for is skipped. ONLY in the environment: this README alone.
set -u
export LC_ALL=C
build=$(cd "$1" && pwd)
tree=$PWD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
n_commands=0

# Commands for a fresh machine, and those that would install something, are only looked at.
cat >"$work/prelude.sh" <<'END'
set -eu
make() { command make -n "$@" >/dev/null; }
END

for file in ${ONLY:-$(find . -name '*.md' -not -path './build/*' -not -path './.git/*' | sed 's|^\./||' | sort)}; do
	folder=$work/$(echo "$file" | tr / -)
	mkdir "$folder"
	for part in "$tree"/*; do ln -s "$part" "$folder/"; done
	rm -f "$folder/build"
	ln -s "$build" "$folder/build"
	awk -v script="$folder/commands.sh" -v file="$file" '
		/^```/ { is_in = !is_in; is_sh = $0 == "```sh"; next }
		is_in && is_sh { print > script }
		is_in && !is_sh && /^ *(build\/|plots\/)?(psd-(sim|run|plot) |make )/ && !/[A-Z][A-Z]/ {
			print file ":" FNR ": this command is in a block that is not marked `sh`, so nobody tries it" \
				> "/dev/stderr"
			bad = 1
		}
		END { exit bad }' "$file" || failed=1
	[ -f "$folder/commands.sh" ] || continue
	n_commands=$((n_commands + $(grep -c . "$folder/commands.sh")))
	cat "$work/prelude.sh" "$folder/commands.sh" >"$folder/all.sh"
	if (cd "$folder" && sh -x all.sh) </dev/null >"$folder/log" 2>&1; then continue; fi
	if tail -n 1 "$folder/log" | grep -q 'this machine was busy'; then
		echo "readme-commands: $file: SKIPPED, others keep this machine busy: $(tail -n 1 "$folder/log")"
	else
		echo "readme-commands: $file: a command fails:" >&2
		tail -n 5 "$folder/log" >&2
		failed=1
	fi
done
[ "$failed" -eq 0 ] || exit 1
echo "readme-commands: $n_commands lines of commands in READMEs run"
