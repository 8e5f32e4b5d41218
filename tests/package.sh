#!/bin/sh
# tests/package.sh make BUILD STAGE PACKAGE.deb: makes a Debian package of what `make install` has put into STAGE. The
# packages of libraries that the programs need come from dpkg-shlibdeps.
# tests/package.sh check PACKAGE.deb: as root, installs the package, runs the programs as a user would, purges it, and
# compares the names of all files with those before.
set -eu
export LC_ALL=C
mode=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
	echo "package: $*" >&2
	exit 1
}

# needed STAGE: the packages of the libraries of all programs, as in "libc6 (>= 2.36), libyaml-0-2".
needed() {
	mkdir -p "$work/debian"
	echo "Source: psd" >"$work/debian/control"
	stage=$(cd "$1" && pwd)
	programs=$(find "$stage/usr/bin" -type f -exec sh -c 'readelf -h "$1" >/dev/null 2>&1' sh {} \; -print |
		sed 's/^/-e/')
	# shellcheck disable=SC2086 # a word for each program
	(cd "$work" && dpkg-shlibdeps -O $programs) | sed -n 's/^shlibs:Depends=//p'
}

make_package() {
	build=$1 stage=$2 package=$3
	version=$(cut -d ' ' -f 1 "$build/version")
	documents=$stage/usr/share/doc/psd
	mkdir -p "$documents" "$stage/DEBIAN"
	cp LICENSE "$documents/copyright"
	gzip -9n <CHANGELOG.md >"$documents/changelog.gz"
	mv "$stage/usr/share/zsh/site-functions" "$stage/usr/share/zsh/vendor-completions" # Debian's zsh looks there
	find "$stage/usr/share/man" -type f ! -name '*.gz' -exec gzip -9nf {} +
	libraries=$(needed "$stage")
	[ -n "$libraries" ] || fail "dpkg-shlibdeps names no library"
	cat >"$stage/DEBIAN/control" <<END
Package: psd
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: psd <psd@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk "$stage/usr" | cut -f 1)
Depends: $libraries, gnuplot-nox | gnuplot
Description: predicts and executes data-parallel training of neural networks
 psd-sim predicts from one scenario file how fast a cluster trains a network.
 psd-run executes the same scenario over TCP, psd-plot draws and compares both.
END
	(cd "$stage" && find usr -type f -exec md5sum {} + | sort -k 2) >"$stage/DEBIAN/md5sums"
	find "$stage" -type d -exec chmod 755 {} +
	dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
	echo "  DEB      $package"
}

# files: the names of all files where a package puts any. Caches and logs are those of dpkg and man.
files() {
	find /usr /etc /opt /var -xdev 2>/dev/null |
		grep -vE '^/var/(lib/dpkg|log|cache|tmp)(/|$)|/__pycache__(/|$)' | sort
}

# The demo of an installed psd: a list, a prediction, a plot, an answer, a new scenario and a short run.
demo() {
	mkdir "$work/demo" "$work/home" "$work/tmp"
	export HOME="$work/home" TMPDIR="$work/tmp"
	cd "$work/demo"
	psd-sim quickstart | grep -q '^quickstart ' || fail "the list has no quickstart"
	psd-sim quickstart poseidon-atc17/vgg19-22k-40gbe --csv >vgg.csv
	psd-plot speedup vgg.csv -o vgg.svg
	[ -s vgg.svg ] || fail "no plot"
	psd-sim init --model resnet50 --nodes 8 --bandwidth 25Gbps -o new.yaml
	grep -q 'schema=/usr/share/psd/scenario.schema.json' new.yaml || fail "a new scenario names no schema"
	psd-sim ask --estimate new.yaml >answers.txt
	psd-sim quickstart quickstart -o quick.yaml
	psd-run --quiet --no-emulation --nodes 1 --iterations 1 --system PS quick.yaml >run.txt
	! command -v man >/dev/null || man -w psd-sim psd-run psd-plot psd-scenario >/dev/null || fail "no manual pages"
	psd-sim --version && psd-run --version && psd-plot --version
	cd /
	left=$(find "$work/home" "$work/tmp" -mindepth 1)
	[ -z "$left" ] || fail "the programs leave $left"
}

check_package() {
	package=$1
	if [ "$(id -u)" -ne 0 ] || dpkg -s psd >/dev/null 2>&1; then
		echo "package: not root, or psd is installed: the package is not tried"
		return
	fi
	files >"$work/before"
	trap 'dpkg --purge psd >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
	trap 'exit 1' INT TERM HUP
	dpkg -i "$package" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "dpkg does not install it"; }
	dpkg -V psd || fail "files differ from those in the package"
	demo
	dpkg --purge psd >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "dpkg does not purge it"; }
	files >"$work/after"
	if ! diff "$work/before" "$work/after" >"$work/diff"; then
		cat "$work/diff" >&2
		fail "the files are not those from before"
	fi
	echo "package: $(basename "$package") installs, runs and leaves no file behind"
}

case $mode in
make) make_package "$2" "$3" "$4" ;;
check) check_package "$(readlink -f "$2")" ;;
*) fail "'$mode' must be make or check" ;;
esac
