#!/bin/sh
# tests/gallery.sh write|check BUILD: the pictures of docs/. docs/gallery.txt names each, with its commands and text;
# `write` makes docs/pictures/NAME.svg and the list in docs/gallery.md. `check` changes nothing and fails if one of them
# is not current. Pictures of another version of gnuplot differ in bytes: there only the data are compared, by the
# checksums in docs/gallery.md. DOCS in the environment: the folder of docs/, if it is not this one.
set -u
export LC_ALL=C
mode=$1
build=$(cd "$2" && pwd)
tree=$PWD
docs=${DOCS:-.}/docs
most_bytes=60000
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
mkdir "$work/tree"
for part in "$tree"/*; do ln -s "$part" "$work/tree/"; done
rm -f "$work/tree/build"
ln -s "$build" "$work/tree/build"

refuse() {
	echo "gallery: $*" >&2
	status=1
}

# The list as a script for each picture, its data and its text.
mkdir "$work/run" "$work/data" "$work/text" "$work/title"
awk -v work="$work" '
	/^#/ { next }
	/^[a-z0-9-]+: / {
		name = substr($1, 1, length($1) - 1)
		sub(/^[^:]*: /, "")
		print > (work "/title/" name)
		print name
		next
	}
	/^    / {
		sub(/^    /, "")
		print > (work "/run/" name)
		if (match($0, /(>|--trace )build\/[^ ]*/)) {
			data = substr($0, RSTART, RLENGTH)
			sub(/^(>|--trace )/, "", data)
			print data > (work "/data/" name)
		}
		next
	}
	NF { print > (work "/text/" name) }' "$docs/gallery.txt" >"$work/names"

same_gnuplot() {
	version=$(gnuplot --version 2>/dev/null | sed 's/^gnuplot //') || return 1
	[ -n "$version" ] && [ -f "$1" ] && grep -qi "produced by gnuplot $version" "$1"
}

while read -r name; do
	picture=$docs/pictures/$name.svg
	if ! (cd "$work/tree" && sh -eu "$work/run/$name") >"$work/log" 2>&1 </dev/null; then
		refuse "$name: a command fails: $(tail -n 1 "$work/log")"
		continue
	fi
	new=$work/tree/build/$name.svg
	if [ ! -f "$new" ]; then
		refuse "$name: its commands must write build/$name.svg"
	elif [ "$(wc -c <"$new")" -gt "$most_bytes" ]; then
		refuse "$name: $(wc -c <"$new") bytes, must be $most_bytes or fewer"
	elif [ "$mode" = write ]; then
		mkdir -p "$docs/pictures"
		cmp -s "$new" "$picture" || cp "$new" "$picture"
	elif [ ! -f "$picture" ]; then
		refuse "$picture is not there: make docs writes it"
	elif same_gnuplot "$picture"; then
		cmp -s "$new" "$picture" || refuse "$picture is not what its commands draw now: make docs writes it"
	fi
	echo
	echo "### $(cat "$work/title/$name")"
	echo
	cat "$work/text/$name"
	echo
	echo "\`\`\`sh"
	cat "$work/run/$name"
	echo "\`\`\`"
	echo
	echo "<!-- data: $(cd "$work/tree" && cksum <"$(tail -n 1 "$work/data/$name")") -->"
	echo "![$(cat "$work/title/$name")](pictures/$name.svg)"
done <"$work/names" >"$work/list"

for picture in "$docs"/pictures/*.svg; do
	[ ! -f "$picture" ] || grep -qx "$(basename "$picture" .svg)" "$work/names" ||
		refuse "docs/gallery.txt does not name $picture"
done
awk -v list="$work/list" '
	$0 == "<!-- end of gallery -->" { skip = 0; print ""; n++ }
	!skip { print }
	$0 == "<!-- gallery -->" { while ((getline line <list) > 0) print line; skip = 1; n++ }
	END { exit n != 2 }' "$docs/gallery.md" >"$work/page" || refuse "docs/gallery.md has no place for the gallery"
if [ "$status" -eq 0 ] && ! cmp -s "$work/page" "$docs/gallery.md"; then
	if [ "$mode" = write ]; then
		cat "$work/page" >"$docs/gallery.md"
	else
		refuse "docs/gallery.md is not what docs/gallery.txt and its commands make now: make docs writes it"
	fi
fi
[ "$status" -ne 0 ] || echo "gallery: $(wc -l <"$work/names") pictures are current"
exit $status
