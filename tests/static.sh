#!/bin/sh
# tests/static.sh BUILD: checks the promises of `make STATIC=1` for BUILD/psd-run. The program needs the C library
# alone, starts in a folder that has nothing else and says there in one line which library is missing. Outside that
# folder it trains with the libraries that it finds.
set -u
export LC_ALL=C
build=$1
program=$build/psd-run
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT

fail() {
	echo "check-static: $program $1" >&2
	exit 1
}

needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for library in $needed; do
	case $library in
	libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | librt.so.1 | ld-linux-*.so.*) ;;
	*) fail "needs $library" ;;
	esac
done
! readelf -d "$program" | grep -qE '\((RUNPATH|RPATH)\)' ||
	fail "looks for libraries in folders of the machine that built it"

# The files that the program needs, at their paths.
for file in $(ldd "$program" | grep -o '/[^ ]*'); do
	mkdir -p "$root$(dirname "$file")" && cp -L "$file" "$root$file"
done
mkdir "$root/tmp" && cp "$program" "$root" && cp -r scenarios "$root" || exit 1

# The program has no OpenSSL, and says so in one line.
printf '127.0.0.1\n' >"$root/hosts"
line=$("$program" --hosts "$root/hosts" --rank 0 --secret "$root/hosts" scenarios/quickstart.yaml 2>&1)
needs="needs a psd-run that was built with OpenSSL 3 (libssl-dev), this one was not"
expected="psd-run[0]: $root/hosts: '--secret' $needs"
[ "$line" = "$expected" ] || fail "does not refuse --secret: $line"

# says DEVICE WORDS: checks that the program, alone with the C library, ends with one line with those words and status 1
says() {
	line=$($inside "$root" /psd-run --quiet --no-emulation --nodes 1 --iterations 1 --set "train.device=$1" \
		scenarios/quickstart.yaml 2>&1)
	status=$?
	case $line in
	*"
"*) fail "says more than one line where it has no $1: $line" ;;
	*"$2"*) ;;
	*) fail "says where it has no $1: $line" ;;
	esac
	[ $status -eq 1 ] || fail "ends with status $status where it has no $1"
	echo "check-static: $line"
}

inside=chroot
chroot / true 2>/dev/null || inside="unshare -Ur chroot"
if $inside "$root" /psd-run --version >"$root/version" 2>&1; then
	says cpu "libdnnl.so.2"
	if "$build/check/libraries" | grep -q cuDNN; then says cuda "no NVIDIA driver"; fi
elif $inside / true 2>/dev/null; then
	fail "does not start with the C library alone: $(cat "$root/version")"
else
	echo "check-static: nobody may change the root folder here: not started alone with the C library"
fi

"$build/check/libraries" >"$root/libraries" || fail "$(cat "$root/libraries")"
cat "$root/libraries"
loss=$("$program" --csv --quiet --no-emulation --nodes 1 --iterations 2 --system PS scenarios/quickstart.yaml) ||
	fail "does not train on the cpu here"
echo "$loss" | tail -n 1 | grep -q 'real-cpu' || fail "trains on something else than the cpu: $loss"
echo "check-static: $(echo "$needed" | wc -w) libraries of C are all that $program needs"
