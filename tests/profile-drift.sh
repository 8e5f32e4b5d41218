#!/bin/sh
# tests/profile-drift.sh BEFORE AFTER: by how much all layers of the second profile together take longer or shorter than those of the first, in whole
# thousandths of these.
set -eu
export LC_ALL=C
[ $# -eq 2 ] || { echo "profile-drift: $# profiles given, must be 2" >&2; exit 2; }
# total PROFILE: seconds of its layers
total() { awk -F , '/^#/ || /^layer,/ { next } { sec += $2 + $3 } END { printf "%.9f", sec }' "$1"; }
before=$(total "$1")
after=$(total "$2")
echo "$before $after" | awk '
	$1 <= 0 { print "profile-drift: the first profile has no layer that takes time" >"/dev/stderr"; exit 2 }
	{ ratio = $2 / $1 - 1; printf "%.0f\n", 1000 * (ratio < 0 ? -ratio : ratio) }
'
