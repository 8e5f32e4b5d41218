#!/bin/sh
# tests/share.sh BUILD: checks the files of `make share` by the programs that read them: roff's macros, shells, and a
# validator of JSON schemas, where these are installed. Each of them is also shown a wrong file, which it must refuse.
set -eu
export LC_ALL=C
share=$1/share
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
	echo "check-share: $*" >&2
	exit 1
}

# page FILE: groff has no warning about a manual page.
page() {
	said=$(groff -man -ww -Tutf8 -z "$1" 2>&1)
	[ -z "$said" ]
}

if command -v groff >/dev/null; then
	for file in "$share"/man/man*/*; do
		page "$file" || fail "$file: $said"
	done
	printf '.TH a 1\n.XX\n' >"$work/page"
	! page "$work/page" || fail "groff takes a page with a wrong macro"
else
	echo "check-share: no groff, manual pages are not checked"
fi

for shell in bash zsh fish; do
	case $shell in
	bash) files=$share/bash-completion/completions ;;
	zsh) files=$share/zsh/site-functions ;;
	fish) files=$share/fish/vendor_completions.d ;;
	esac
	if ! command -v $shell >/dev/null; then
		echo "check-share: no $shell, its completion is not checked"
		continue
	fi
	for file in "$files"/*; do
		$shell -n "$file" || fail "$file"
	done
done

if python3 -c 'import jsonschema, yaml' 2>/dev/null; then
	find scenarios -name '*.yaml' -exec grep -l '^systems:' {} + >"$work/files"
	sed 's/sync: ps/sync: pigeon/' scenarios/quickstart.yaml >"$work/choice.yaml"
	sed 's/bandwidth: 1Gbps/bandwidth: 1/' scenarios/quickstart.yaml >"$work/unit.yaml"
	sed 's/^compute:/komputer:/' scenarios/quickstart.yaml >"$work/key.yaml"
	python3 tests/schema.py "$share/psd/scenario.schema.json" "$work/files" "$work"/*.yaml
else
	echo "check-share: no jsonschema and yaml for python3, the schema is not checked with scenarios"
fi
echo "check-share: manual pages, completion and schema are well-formed"
