#!/bin/bash
# tests/extremes.sh BUILD COUNT SEED: psd-sim on COUNT scenarios with values as extreme as the schema allows, simulated
# and estimated. Each must give results, or be refused with one line, within LIMIT seconds of processor time. The
# scenarios stay in BUILD/extremes/.
set -u
export LC_ALL=C
build=$1
count=$2
seed=$3
limit=20
folder=$build/extremes
passed=0
failed=0
# Under a sanitiser an event takes ten times as long.
events=20000000
case $build in */*) events=2000000 ;; esac

# try NUMBER OPTION...: one scenario. A process that runs for too long is killed, and psd-sim says so of its children.
try() {
	number=$1
	shift
	(
		ulimit -t $limit
		exec "$build/psd-sim" --quiet --csv --set most_events=$events "$@" "$folder/$number.yaml"
	) >"$folder/$number.csv" 2>"$folder/$number.err"
	status=$?
	if [ "$status" -eq 0 ] || { [ "$status" -le 2 ] && [ "$(wc -l <"$folder/$number.err")" -eq 1 ] &&
		! grep -q "its process" "$folder/$number.err"; }; then
		passed=$((passed + 1))
		return
	fi
	echo "extremes: scenario $number${1:+ $*}: status $status: $(head -n 3 "$folder/$number.err")"
	failed=$((failed + 1))
}

mkdir -p "$folder"
for number in $(seq "$seed" $((seed + count - 1))); do
	"$build/extremes-of" "$number" "$PWD/scenarios/models" >"$folder/$number.yaml" || exit 1
	try "$number"
	try "$number" --estimate
done
echo "extremes: scenarios $seed to $((seed + count - 1)) in $folder/"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
