#!/bin/sh
# tests/bench/real/bench_scale.sh BUILD: cost of simulating large clusters, ResNet-50 at 25 Gbit/s, as CSV: user seconds
# and memory of a whole process, beside SMPI (SimGrid's own simulation of MPI) where it is installed. SMPI replays one
# iteration's gradient in four all-reduces, without the overlap with the backward pass.
set -eu
export LC_ALL=C
build=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# write_scenario FILE METHOD CLUSTER
write_scenario() {
	cat >"$1" <<-END
		title: ResNet-50
		model: {graph: $PWD/scenarios/models/resnet50.yaml, batch_per_worker: 32}
		compute: {device: v100}
		cluster: {stack: none, $3}
		systems: [{name: s, sync: $2}]
		most_events: 1000000000
	END
}

# cost COMMAND...: "user seconds,MiB" of a command and its children. Its output is dropped.
cost() {
	python3 - "$@" <<-'END'
		import resource, subprocess, sys
		status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
		usage = resource.getrusage(resource.RUSAGE_CHILDREN)
		print("%.2f,%.0f" % (usage.ru_utime, usage.ru_maxrss / 1024) if status == 0 else "failed,failed")
	END
}

# row SIMULATOR METHOD FIDELITY WORKERS COST MOST_SEC MOST_MIB; 0: no bar
row() {
	echo "$1,$2,$3,$4,$5,$6,$7" | awk -F , '{
		is_met = $5 != "failed" && ($7 == 0 || $5 <= $7) && ($8 == 0 || $6 <= $8)
		print $1 "," $2 "," $3 "," $4 "," $5 "," $6 "," ($7 == 0 && $8 == 0 ? "" : is_met ? "yes" : "no")
	}'
}

# psd METHOD FIDELITY WORKERS MOST_SEC MOST_MIB CLUSTER
psd() {
	write_scenario "$work/scenario.yaml" "$1" "$6"
	row psd-sim "$(echo "$1" | tr -d ,)" "$2" "$3" \
		"$(cost "$build/psd-sim" --quiet --jobs 1 --fidelity "$2" "$work/scenario.yaml")" "$4" "$5"
}

# estimates METHOD MOST_SEC: 100 numbers of nodes, each with 100 bandwidths; the workers are those of the largest
estimates() {
	write_scenario "$work/scenario.yaml" "$1" "$star"
	awk 'BEGIN {
		for (i = 0; i < 100; i++) {
			nodes = nodes (i ? ", " : "") 2 + 3 * i
			rates = rates (i ? ", " : "") 1000 + 400 * i "Mbps"
		}
		print "sweep: {nodes: [" nodes "], bandwidth: [" rates "]}"
	}' >>"$work/scenario.yaml"
	row psd-sim "$(echo "$1" | tr -d ,)" '10000 estimates' 299 \
		"$(cost "$build/psd-sim" --quiet --csv --estimate "$work/scenario.yaml")" "$2" 0
}

# smpi WORKERS
smpi() {
	i=0
	write_scenario "$work/scenario.yaml" ring "nodes: $1, network: {bandwidth: 25Gbps, latency: 10us}"
	"$build/psd-sim" platform "$work/scenario.yaml" >"$work/platform.xml"
	: >"$work/hosts"
	: >"$work/list"
	while [ "$i" -lt "$1" ]; do
		{
			echo "$i init"
			for _ in 1 2 3 4; do echo "$i allreduce 3193669 0"; done
			echo "$i finalize"
		} >"$work/$i.trace"
		echo "n$i" >>"$work/hosts"
		echo "$work/$i.trace" >>"$work/list"
		i=$((i + 1))
	done
	row SMPI "ring fuse: 25MiB" message "$1" "$(cost smpirun -np "$1" -platform "$work/platform.xml" \
		-hostfile "$work/hosts" -replay "$work/list" --cfg=smpi/allreduce:lr --cfg=network/model:CM02 \
		--cfg=network/crosstraffic:no --cfg=network/TCP-gamma:1e15)" 0 0
}

star='network: {bandwidth: 25Gbps, latency: 10us}'
racks='network: {bandwidth: 25Gbps, latency: 10us, topology: racks, nodes_per_rack: 32, oversubscription: 4}'
slow='slow: [{node: 77, compute: 0.5}]'

echo simulator,method,fidelity,workers,user_sec,rss_mib,is_within_bar
psd ring flow 4096 0 0 "nodes: 4096, $star"
psd ring flow 65536 3 150 "nodes: 65536, $star"
psd 'ring, fuse: 25MiB' flow 1048576 10 500 "nodes: 65536, workers_per_node: 16, $star"
psd two-level flow 65536 10 0 "nodes: 8192, workers_per_node: 8, $slow, $racks"
psd hybrid flow 65536 10 0 "nodes: 65536, $star"
for nodes in 32 256 1024 2048 8192; do
	psd hybrid flow $((8 * nodes)) "$([ "$nodes" = 8192 ] && echo 10 || echo 0)" 0 \
		"nodes: $nodes, workers_per_node: 8, slow: [{node: 7, compute: 0.5}], $racks"
done
psd sfb flow 65536 10 0 "nodes: 8192, workers_per_node: 8, $slow, $racks"
psd two-level-ps flow 65536 10 0 "nodes: 8192, workers_per_node: 8, $slow, $racks"
psd ring message 1024 5 0 "nodes: 1024, $star"
psd ring message 4096 20 0 "nodes: 4096, $star"
for method in halving-doubling double-tree torus; do
	psd "$method" message 1024 10 0 "nodes: 1024, $star"
done
psd 'ring, fuse: 25MiB' message 256 0 0 "nodes: 256, $star"
estimates ring 1
estimates 'ring, fuse: 25MiB' 1
if command -v smpirun >/dev/null; then
	smpi 64
	smpi 256
else
	echo 'bench_scale: smpirun is not installed, its rows are left out' >&2
fi
