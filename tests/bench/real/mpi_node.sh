#!/bin/sh
# tests/bench/real/mpi_node.sh FOLDER COMMAND [ARGUMENT...]: a node's part of an Open MPI job inside in-cluster. Node 0
# runs mpirun, whose remote shell is this script again; the others wait for the daemon's command line at a pipe in
# FOLDER, since nodes have no ssh.
set -eu
folder=$1
shift

if [ "$folder" = --as-remote-shell ]; then # HOST COMMAND..., called by mpirun
	host=$1
	shift
	exec sh -c 'printf "%s\n" "$1" >"$2"' - "$*" "$PSD_MPI_FOLDER/$host"
fi

if [ "$RANK" -ne 0 ]; then
	mkfifo "$folder/$NODE_ADDRESS"
	read -r command <"$folder/$NODE_ADDRESS"
	exec sh -c "$command"
fi
hosts=
for node in $(seq "$WORLD_SIZE"); do
	hosts="$hosts${hosts:+,}10.0.0.$node:1"
	while [ "$node" -gt 1 ] && ! [ -p "$folder/10.0.0.$node" ]; do sleep 0.05; done
done
PSD_MPI_FOLDER=$folder
TMPDIR=$folder
export PSD_MPI_FOLDER TMPDIR
exec mpirun --allow-run-as-root --host "$hosts" -np "$WORLD_SIZE" --map-by node --bind-to none --oversubscribe \
	--mca plm rsh --mca plm_rsh_agent "$0 --as-remote-shell" --mca plm_rsh_no_tree_spawn 1 \
	--mca oob_tcp_if_include eth0 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca pml ob1 "$@"
