#!/bin/sh
# tests/bench/real/bench_allreduce.sh BUILD: all-reduce of 64 MiB by psd's ring, without and with --secret, Gloo and
# Open MPI between the nodes of an emulated cluster, links of 1 Gbit/s and as fast as the machine. Implementations take
# turns, so that a neighbour on the machine meets them all. An operation takes what it takes the rank that joins last.
# CSV: median and lowest of all rounds' operations, processor seconds per rank and operation.
# shellcheck source=tests/bench/real/helper.sh
. tests/bench/real/helper.sh

bytes=67108864
within_sec=120 # Open MPI's daemons do not always find each other

# run IMPLEMENTATION NODES OPERATIONS RESULT [--bandwidth RATE]
run() {
	name=$1 nodes=$2 operations=$3 result=$4
	shift 4
	scratch=$(mktemp -d "$folder/XXXXXX")
	case $name in
	psd-secret)
		set -- "$@" -- env SECRET="$folder/secret" "$build/bench/exchange" none Ring "$operations" "$result" \
			$here/allreduce.yaml
		;;
	psd) set -- "$@" -- "$build/bench/exchange" none Ring "$operations" "$result" $here/allreduce.yaml ;;
	gloo-*)
		set -- "$@" -- "$build/bench/allreduce-gloo" "${name#gloo-}" $bytes "$operations" "$scratch" "$result"
		;;
	open-mpi)
		set -- "$@" -- $here/mpi_node.sh "$scratch" "$build/bench/allreduce-mpi" $bytes "$operations" "$result"
		;;
	esac
	timeout "$within_sec" "$build/bench/in-cluster" --nodes "$nodes" "$@" >&2 ||
		{ echo "bench: $name failed" >&2; [ "$name" != psd ]; }
}

# measure NODES BITS_PER_SEC ROUNDS OPERATIONS; 0 bits: as fast as the machine
measure() {
	measured=$folder/$1-$2
	mkdir "$measured"
	for round in $(seq "$3"); do
		for name in $names; do
			if [ "$2" -gt 0 ]; then
				run "$name" "$1" "$4" "$measured/$name.$round" --bandwidth "${2}bps"
			else
				run "$name" "$1" "$4" "$measured/$name.$round"
			fi
		done
	done
	for name in $names; do
		for round in $(seq "$3"); do
			paste -d ' ' "$measured/$name.$round".[0-9]* | sed "s/^/$name /"
		done
	done | awk -v ranks="$1" -v bandwidth_bps="$2" -v bytes=$bytes -f $here/allreduce.awk
}

names='psd psd-secret'
(umask 077 && head -c 32 /dev/urandom >"$folder/secret")
if [ -x "$build/bench/allreduce-gloo" ]; then
	names="$names gloo-ring-chunked gloo-halving-doubling"
else
	skip Gloo
fi
if [ -x "$build/bench/allreduce-mpi" ] && command -v mpirun >/dev/null; then
	names="$names open-mpi"
else
	skip "Open MPI"
fi

echo "ranks,bandwidth_bps,implementation,operations,median_sec,lowest_sec,cpu_sec,rate_ratio,\
most_sec,is_met,most_cpu_sec,is_met_by_cpu"
measure 2 0 3 12
measure 4 0 3 8
measure 2 1000000000 4 6
measure 4 1000000000 4 5
