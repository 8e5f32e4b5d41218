#!/bin/sh
# tests/gpu-check.sh FOLDER CSV [ROWS...]: checks and measures psd on this machine's GPU, in less than eight minutes,
# with FOLDER/psd-run and FOLDER/psd-gpu-tests. It prints one table and writes the same to CSV with card and driver. A
# row without its tool says "not there" and judges nothing. Without a GPU the script prints one line and ends with
# status 1. Programs on the stand-in (tests/README.md) are taken to try this script: networks are small then, and the
# table says that its figures are not a GPU's. Rows are in CSV as soon as they are known, so that an early end leaves
# them. Files beside CSV have the messages of failures, the calibration of the GPU and the runs that it is to predict;
# tests/gpu-predict.sh CSV predicts them on a machine with psd-sim, without a GPU. Rows are functions, listed in
# all_rows, which call `row` or `absent`. ROWS are some of them, such as those without time left: `tests/gpu-check.sh
# build/cuda rest.csv sanitizer prediction`.
set -u
export LC_ALL=C
run=$1/psd-run tests=$1/psd-gpu-tests csv=$2
shift 2
all_rows="layers updates faults goes_on losses images workers sanitizer prediction nccl nccl_inside compiled"
for rows in "$@"; do
	case " $all_rows " in
	*" $rows "*) ;;
	*) echo "gpu-check: no rows '$rows', must be some of $all_rows" >&2; exit 1 ;;
	esac
done
wanted=${*:-$all_rows}
kept=${csv%.csv}
scenario=tests/gpu/check.yaml
work=$(mktemp -d) || exit 1
trap 'kill $awake $importing 2>/dev/null; rm -rf "$work"' EXIT
awake=""
importing=""
BUDGET_SEC=450
started=$(date +%s)
seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')

for program in "$run" "$tests"; do
	[ -x "$program" ] || { echo "gpu-check: no program $program" >&2; exit 1; }
done
if grep -q psd_stand_in_launch "$run"; then
	is_stand_in=yes card="stand-in, no GPU" driver=none
else
	is_stand_in=no
	card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
	driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
	# The driver shuts an idle GPU down, and each start takes seconds.
	nvidia-smi --loop=600 >/dev/null 2>&1 &
	awake=$!
fi
echo no >"$work/torch"
if [ $is_stand_in = no ] && command -v python3 >/dev/null; then
	: >"$work/torch"
	{ python3 -c 'import torch, yaml
print("yes" if torch.cuda.is_available() else "no")' 2>/dev/null || echo no; } >"$work/torch" &
	importing=$!
fi
version=$("$run" --version)
first_gpu=${CUDA_VISIBLE_DEVICES:-0}
first_gpu=${first_gpu%%,*}
if [ $is_stand_in = yes ]; then
	gpus=1
elif [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
	gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | wc -l)
else
	gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
fi
[ "$gpus" -gt 0 ] || gpus=1

left_sec() { echo $((BUDGET_SEC - $(date +%s) + started)); }
# within SEC: prints SEC, or less if the eight minutes end before
within() { most=$(($(left_sec) + 20)); [ $most -gt 1 ] || most=1; echo $(($1 < most ? $1 : most)); }
# field COLUMN: prints the cell in the last line of CSV on standard input
field() {
	awk -F , -v column="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i; next }
		{ value = $at }
		END { print value }'
}
compute() { awk "BEGIN { printf \"%.4g\", $1 }"; }

# row WHAT BAR FIGURE UNIT [MET]: adds a row. BAR is "<=" or ">=" with a number, or nothing; MET overrules the
# comparison. UNIT stands behind FIGURE.
row() {
	met=${5:-$(awk -v bar="$2" -v figure="$3" 'BEGIN {
		split(bar, part, " ")
		if (bar == "") print "-"
		else if (figure !~ /^[-+0-9.eE]+$/) print "no"
		else print (part[1] == "<=" ? figure + 0 <= part[2] + 0 : figure + 0 >= part[2] + 0) ? "yes" : "no" }')}
	printf '%s\t%s\t%s %s\t%s\n' "$1" "$2" "$3" "$4" "$met" >>"$work/table"
	printf '"%s",%s,%s,%s,%s,"%s",%s,%s\n' "$1" "$2" "$3" "$4" "$met" "$card" "$driver" "$version" >>"$csv"
	printf 'gpu-check: %s: %s %s\n' "$1" "$3" "$4" >&2
}
absent() { row "$1" "$2" "" "not there: $3" "-"; }
# keep WHAT FILE: keeps the messages for people who read CSV when the GPU is no longer there
keep() {
	echo "== $1"
	tail -n 100 "$2"
} >>"$kept-failures.txt"
# ended STATUS: notes the status of a program that had a time limit
ended() {
	echo "$1" >"$work/status"
	return "$1"
}
# was_late: true if the last program ran into its time limit; forgets it
was_late() {
	late=$(cat "$work/status" 2>/dev/null)
	rm -f "$work/status"
	[ "$late" = 124 ] || [ "$late" = 137 ]
}
# failed WHAT BAR FILE: adds a row with the last message. A program that ended because no time was left has not failed.
failed() {
	said=$(tail -n 1 "$3" | tr ',\t' ';  ')
	if was_late; then
		[ "$(left_sec)" -gt 0 ] || { absent "$1" "$2" "no time left"; return; }
		said="no end in its time. $said"
	fi
	row "$1" "$2" "" "failed: $said" no
	keep "$1" "$3"
}

# train OUT MODEL BATCH ARITHMETIC SYSTEM WORKERS ITERATIONS [OPTION...]: writes psd-run's CSV to OUT
train() {
	out=$1 model=$2 batch=$3 arithmetic=$4 system=$5 workers=$6 iterations=$7
	shift 7
	timeout -k 5 "$(within 100)" "$run" --csv --no-emulation --nodes 1 --system "$system" \
		--set "cluster.workers_per_node=$workers" --iterations "$iterations" \
		--set "model.graph=$PWD/scenarios/models/$model.yaml" --set "model.batch_per_worker=$batch" \
		--set "train.device=cuda" --set "train.arithmetic=$arithmetic" "$@" $scenario >"$out" 2>"$work/err"
	ended $?
}

# ---- looking for a GPU ----

first() { train "$work/first" cifar10-quick 4 fp32 Ring 1 2; }
# A second try, with the folders that Python itself names, if psd-run did not find its packages (python3 may be a
# script).
first_by_python() {
	grep -q PSD_LIBRARIES "$work/err" || return 1
	PSD_LIBRARIES=$(python3 -c 'import glob, sys
print(":".join(folder for path in sys.path for folder in glob.glob(path + "/nvidia/*/lib")))')
	export PSD_LIBRARIES
	first && echo "gpu-check: needs PSD_LIBRARIES=$PSD_LIBRARIES" >&2
}
first
status=$?
if [ $status -ne 0 ] && ! first_by_python; then
	case $status in 124 | 137) echo "two iterations of a small network took over 100 s" >>"$work/err" ;; esac
	echo "gpu-check: no GPU to check: $(grep -v 'no emulation' "$work/err" | tail -n 1)" >&2
	exit 1
fi
mkdir -p "$(dirname "$csv")"
rm -f "$kept-failures.txt"
echo "row,bar,figure,unit,is_met,card,driver,version" >"$csv"
echo "gpu-check: $card, driver ${driver:-unknown}, $version, random inputs by seed $seed" >&2

# Small networks suit the stand-in. Their names are in the table, so that no figure is taken for one of a GPU.
if [ $is_stand_in = yes ]; then
	NETWORKS="cifar10-quick:8:1e-4" LOSS_NETWORKS="" WORKERS_NETWORK=cifar10-quick WORKERS_BATCH=8 ITERATIONS=5
else
	NETWORKS="alexnet:256:1e-4 vgg19:64:1e-4 resnet50:128:2e-6" LOSS_NETWORKS="alexnet:8:1e-4 resnet50:4:2e-6"
	WORKERS_NETWORK=alexnet WORKERS_BATCH=128 ITERATIONS=20
fi

# ---- rows ----

# One draw in forty makes a gradient that is nearly nothing but bf16's rounding. A few kinds that fail are drawn twice
# more, and the middle one counts. If more kinds fail, chance is not the reason.
draw_again() {
	failing=$(sed -nE 's/^\[(FAIL|CRASH|TIME)\] //p' "$work/layers")
	[ "$(echo "$failing" | wc -l)" -le 3 ] || return
	for kind in $failing; do
		for more in 1 2; do
			PSD_CHECK_SEED=$((seed + more)) timeout -k 5 "$(within 30)" "$tests" --filter "$kind" \
				>>"$work/layers" 2>&1
		done
	done
}

# Inputs are fresh random ones. A row has the worst kind of each arithmetic. Parts run beside each other, because each
# case starts CUDA anew.
layers() {
	parts="a-c d-l m-r s-z" processes=
	for part in $parts; do
		PSD_CHECK_SEED=$seed timeout -k 5 "$(within 120)" "$tests" --filter "cuda_layers/[$part]*" \
			>"$work/layers-$part" 2>&1 &
		processes="$processes $!"
	done
	for process in $processes; do wait "$process"; done
	cat "$work"/layers-* >"$work/layers"
	draw_again
	for judged in fp32:1e-4 tf32:3e-3 fp16:1e-2 bf16:1e-2; do
		what="layers against double, ${judged%:*}" bar="<= ${judged#*:}"
		worst=$(awk -F , -v arithmetic="${judged%:*}" \
			'$1 == "layer" && $3 == arithmetic { print $2, $4 }' "$work/layers" |
			sort -k 1,1 -k 2g | awk '
				function settle(middle) {
					middle = error[int((n + 1) / 2)]
					if (n && middle + 0 >= most + 0) { most = middle; worst = kind }
					kinds += n > 0
					n = 0
				}
				$1 != kind { settle(); kind = $1 }
				{ error[++n] = $2 }
				END { settle(); if (kinds) print most, "(" worst "; " kinds " kinds)" }')
		if [ -n "$worst" ]; then row "$what" "$bar" "${worst%% *}" "${worst#* }"; fi
		[ -n "$worst" ] || failed "$what" "$bar" "$work/layers"
	done
	n_failed=$(awk '
		/^\[[A-Z]+\] cuda_layers/ { all[$2]++ }
		/^\[(FAIL|CRASH|TIME)\]/ { failed[$2]++ }
		END { for (kind in failed) if (2 * failed[kind] > all[kind]) n++; print n + 0 }' "$work/layers")
	n_parts=$(cat "$work"/layers-* | grep -c Synthesis)
	unit="/ $(grep -o 'cuda_layers.*' "$work/layers" | sort -u | wc -l) kinds"
	[ "$n_parts" -eq 4 ] || unit="$unit; $((4 - n_parts)) of 4 parts did not end"
	row "layer kinds that fail" "<= 0" "$((n_failed + 4 - n_parts))" "$unit"
	[ "$((n_failed + 4 - n_parts))" -eq 0 ] || keep "layers" "$work/layers"
}

# Updates, chunks and wire formats, compared with the processor's. Without oneDNN the cases of narrow matrices are
# skipped that need a product of the processor's.
updates() {
	timeout -k 5 "$(within 60)" "$tests" --filter '@(cuda_low_rank|cuda_packing|cuda_parameters|cuda_wire)/*' \
		>"$work/updates" 2>&1
	ended $?
	what="updates, chunks and wire as the processor's"
	passed=$(sed -n 's/.*Tested: \([0-9]*\) | Passing: \([0-9]*\).*/\1 \2/p' "$work/updates")
	if [ -z "$passed" ]; then
		failed "$what" "<= 0" "$work/updates"
		return
	fi
	row "$what" "<= 0" "$((${passed% *} - ${passed#* }))" "/ ${passed% *} cases fail"
	[ "${passed% *}" -eq "${passed#* }" ] || keep "$what" "$work/updates"
}

# losses_apart A B: prints the largest relative difference between the losses of two logs
losses_apart() {
	awk -F , 'FNR == 1 { file++; for (i = 1; i <= NF; i++) if ($i == "loss") at = i; next }
		file == 1 { first[FNR] = $at; n++; next }
		{ apart = ($at - first[FNR]) / first[FNR]; if (apart < 0) apart = -apart }
		{ if (apart > most) most = apart; m++ }
		END { if (n && n == m) printf "%.3g\n", most }' "$1" "$2"
}

# first_losses WHAT BAR LOG LOG: adds a row; few iterations, because training makes differences by rounding larger
first_losses() {
	head -n 4 "$3" >"$work/first.left"
	head -n 4 "$4" >"$work/first.right"
	row "$1" "$2" "$(losses_apart "$work/first.left" "$work/first.right")" "apart"
}

# lines_apart A B: counts the lines of two logs that differ in more than the time
lines_apart() {
	awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "elapsed_sec") at = i }
		{ $at = "" }
		FNR == NR { line[FNR] = $0; n = FNR; next }
		{ m = FNR; apart += line[FNR] != $0 }
		END { print m == n ? apart + 0 : "lines are missing" }' "$1" "$2"
}

# train_losses LOG NETWORK:BATCH:RATE DEVICE: trains 20 iterations and logs the losses
train_losses() {
	log=$1 device=$3
	IFS=: read -r name batch rate <<-END
		$2
	END
	train "$work/losses" "$name" "$batch" fp32 Ring 1 20 --log "$log" --set "train.learning_rate.base=$rate" \
		--set "train.device=$device"
}

# Losses are compared with the CPU's if this program has it, else with those on record. At this learning rate training
# moves losses by more than the bar, and rounding by far less (traces/gpu-check/README.md).
losses() {
	for network in $LOSS_NETWORKS; do
		what="${network%%:*}, 20 losses against the CPU"
		reference=traces/gpu-check/${network%%:*}.csv origin="on record"
		if train_losses "$work/gpu.log" "$network" cuda; then
			if [ "$(left_sec)" -gt 300 ] && train_losses "$work/cpu.log" "$network" cpu; then
				reference=$work/cpu.log origin="by this machine"
			fi
			row "$what" "<= 1e-3" "$(losses_apart "$work/gpu.log" "$reference")" "$origin"
		else
			failed "$what" "<= 1e-3" "$work/err"
		fi
	done
}

# PyTorch's first import may take a minute: it begins when this script does.
has_torch() {
	most_sec=$(within 120)
	while [ ! -s "$work/torch" ] && [ "$most_sec" -gt 0 ]; do
		sleep 1
		most_sec=$((most_sec - 1))
	done
	[ "$(cat "$work/torch")" = yes ]
}
no_torch() { if [ -s "$work/torch" ]; then echo "PyTorch with a GPU"; else echo "an end of PyTorch's import"; fi; }
# torch_images NETWORK BATCH ARITHMETIC [--compile]: prints PyTorch's images/s
torch_images() {
	name=$1 batch=$2 arithmetic=$3
	shift 3
	timeout -k 5 "$(within 100)" python3 tests/gpu/torch_images.py "scenarios/models/$name.yaml" --batch "$batch" \
		--arithmetic "$arithmetic" --iterations $ITERATIONS "$@" 2>"$work/err"
	ended $?
}

# idle_percent CSV: prints the share of an iteration in which nothing is computed
idle_percent() {
	idle_sec="$(field exposed_comm_sec <"$1") + $(field other_waiting_sec <"$1")"
	compute "($idle_sec) / $(field iteration_sec <"$1") * 100"
}

# beside WHAT BAR OWN NAME BATCH ARITHMETIC RATE: adds rows for engines that give equal bits, and for the gain by graphs
beside() {
	[ "$(left_sec)" -gt 240 ] || { absent "$1, with equal bits" "" "no time left"; return; }
	what=$1 bar=$2 own=$3
	shift 3
	set -- "$1" "$2" "$3" Ring 1 $ITERATIONS --set "train.learning_rate.base=$4"
	train "$work/equal" "$@" --log "$work/equal.log" ||
		{ failed "$what, with equal bits" "" "$work/err"; return; }
	equal=$(field images_per_sec <"$work/equal")
	row "$what, with equal bits" "" "$(compute "$equal / $own")" "x its images/s"
	refused=$(sed -n 's/.*psd-run: \([0-9]*\) of [0-9]* parts of an iteration are no CUDA graph.*/\1/p' "$work/err")
	row "$what, parts that are no graph" "<= 0" "${refused:-0}" ""
	[ -z "$refused" ] || keep "$what" "$work/err"
	first_losses "$what, first losses against equal bits'" "<= $bar" "$work/own.log" "$work/equal.log"
	train "$work/calls" "$@" --set train.graphs=false --log "$work/calls.log" ||
		{ failed "$what, without graphs" "" "$work/err"; return; }
	calls=$(field images_per_sec <"$work/calls")
	row "$what, without graphs, images/s" "" "$calls" "1/s"
	row "$what, without graphs, stream idles" "" "$(idle_percent "$work/calls")" "%"
	row "$what, graphs over calls" "" "$(compute "$equal / $calls")" "x its images/s"
	row "$what, equal bits of graphs and calls" "<= 0" "$(lines_apart "$work/equal.log" "$work/calls.log")" \
		"iterations differ"
}

images() {
	for network in $NETWORKS; do
		IFS=: read -r name batch rate <<-END
			$network
		END
		rm -f "$work/tf32.log"
		for judged in tf32:3e-3 bf16:1e-2; do
			arithmetic=${judged%:*} bar=${judged#*:}
			what="$name $batch $arithmetic"
			# As PyTorch does there: the engine that measures quickest, with equal bits or not.
			if ! train "$work/own" "$name" "$batch" "$arithmetic" Ring 1 $ITERATIONS \
				--set train.deterministic=false --set "train.learning_rate.base=$rate" \
				--log "$work/own.log"; then
				failed "$what, images/s" "" "$work/err"
				continue
			fi
			own=$(field images_per_sec <"$work/own")
			row "$what, images/s" "" "$own" "1/s"
			row "$what, compute stream idles" "<= 3" "$(idle_percent "$work/own")" "%"
			if [ "$arithmetic" = tf32 ]; then
				cp "$work/own.log" "$work/tf32.log"
			elif [ -f "$work/tf32.log" ]; then
				first_losses "$what, first losses against tf32's" "<= $bar" \
					"$work/own.log" "$work/tf32.log"
			fi
			beside "$what" "$bar" "$own" "$name" "$batch" "$arithmetic" "$rate"
			if ! has_torch; then
				absent "$what, images/s over PyTorch's" ">= 1.0" "$(no_torch)"
			elif theirs=$(torch_images "$name" "$batch" "$arithmetic"); then
				row "$what, images/s over PyTorch's" ">= 1.0" "$(compute "$own / $theirs")" \
					"($theirs 1/s eager)"
				echo "$what:$name:$batch:$arithmetic:$own" >>"$work/to-compile"
			else
				failed "$what, images/s over PyTorch's" ">= 1.0" "$work/err"
			fi
		done
	done
}

# This is the last row, because it takes the time that is left.
compiled() {
	[ -f "$work/to-compile" ] ||
		{ absent "images/s over torch.compile's" "" "PyTorch with a GPU, or images before it"; return; }
	while IFS=: read -r what name batch arithmetic own; do
		if [ "$(left_sec)" -lt 60 ]; then
			absent "$what, images/s over torch.compile's" "" "no time left"
		elif theirs=$(torch_images "$name" "$batch" "$arithmetic" --compile </dev/null); then
			row "$what, images/s over torch.compile's" "" "$(compute "$own / $theirs")" "($theirs 1/s)"
		else
			failed "$what, images/s over torch.compile's" "" "$work/err"
		fi
	done <"$work/to-compile"
}

# Communication alone is the exposed part of the sequential schedule; computation alone is the device's time in the
# wait-free one.
share_gpu() {
	for workers in 2 4; do
		what="$workers workers on one GPU"
		for system in Hybrid PS "PS in sequence" Ring; do
			train "$work/$system" $WORKERS_NETWORK $WORKERS_BATCH fp32 "$system" "$workers" 8 ||
				{ failed "$what, $system" "" "$work/err"; return; }
			row "$what, $system" "" "$(compute "$(field iteration_sec <"$work/$system") * 1000")" "ms"
		done
		ps=$(field iteration_sec <"$work/PS") in_turn=$(field iteration_sec <"$work/PS in sequence")
		hybrid=$(field iteration_sec <"$work/Hybrid")
		row "$what, hybrid over PS" "<= 1.0" "$(compute "$hybrid / $ps")" "x its time"
		row "$what, wait-free over sequential" "<= 1.0" "$(compute "$ps / $in_turn")" "x its time"
		longer=$(awk -v a="$(field compute_sec <"$work/PS")" -v b="$(field other_work_sec <"$work/PS")" \
			-v c="$(field exposed_comm_sec <"$work/PS in sequence")" \
			'BEGIN { print (a + b > c ? a + b : c) }')
		row "$what, wait-free over the longer part" "<= 1.1" "$(compute "$ps / $longer")" "x its time"
	done
}

# All workers share one GPU, even if there are several.
workers() { (CUDA_VISIBLE_DEVICES=$first_gpu && export CUDA_VISIBLE_DEVICES && share_gpu); }

# NCCL wants a GPU for each worker, and a network interface even inside a machine; neither is psd-run's fault.
refuses_to_share() { grep -q 'GPU of its own' "$work/err"; }
has_no_interface() { grep -q 'to say where ranks meet' "$work/err"; }

# Each worker has its own GPU as far as there are enough.
nccl() {
	for workers in 2 4; do
		what="$workers workers, sync: nccl"
		if train "$work/NCCL" $WORKERS_NETWORK $WORKERS_BATCH fp32 NCCL "$workers" 8; then
			train "$work/Ring" $WORKERS_NETWORK $WORKERS_BATCH fp32 Ring "$workers" 8 ||
				{ failed "$what, Ring" "" "$work/err"; return; }
			theirs=$(field iteration_sec <"$work/NCCL") own=$(field iteration_sec <"$work/Ring")
			row "$what" "" "$(compute "$theirs * 1000")" \
				"ms (ring $(compute "$own * 1000") ms; GPUs: $gpus)"
			row "$what, psd's ring over it" "" "$(compute "$own / $theirs")" "x its time"
		elif grep -q 'needs NCCL' "$work/err"; then
			absent "$what" "" "libnccl.so.2"
		elif has_no_interface; then
			absent "$what" "" "a network interface for NCCL"
		elif [ "$gpus" -lt "$workers" ] && refuses_to_share; then
			absent "$what" "" "$workers GPUs (NCCL wants one for each worker; here $gpus)"
		else
			failed "$what" "" "$work/err"
		fi
	done
}

# Two nodes on this machine differ by their addresses alone: transfers between them go through hosts, transfers inside
# them from GPU to GPU.
nccl_inside() {
	what="2 nodes of 2 workers, sync: nccl-two-level"
	set -- --nodes 2 --set cluster.workers_per_node=2
	if train "$work/inside" $WORKERS_NETWORK $WORKERS_BATCH fp32 "NCCL inside" 2 8 "$@"; then
		train "$work/levels" $WORKERS_NETWORK $WORKERS_BATCH fp32 "Two levels" 2 8 "$@" ||
			{ failed "$what, two-level" "" "$work/err"; return; }
		inside=$(field iteration_sec <"$work/inside") levels=$(field iteration_sec <"$work/levels")
		row "$what" "" "$(compute "$inside * 1000")" \
			"ms (two-level $(compute "$levels * 1000") ms; GPUs: $gpus)"
		row "$what, over two-level" "<= 1.0" "$(compute "$inside / $levels")" "x its time"
	elif grep -q 'needs NCCL' "$work/err"; then
		absent "$what" "" "libnccl.so.2"
	elif has_no_interface; then
		absent "$what" "" "a network interface for NCCL"
	elif [ "$gpus" -lt 4 ] && refuses_to_share; then
		absent "$what" "" "4 GPUs (NCCL wants one for each worker; here $gpus)"
	else
		failed "$what" "" "$work/err"
	fi
}

find_sanitizer() {
	for program in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer \
		/usr/local/cuda/compute-sanitizer/compute-sanitizer; do
		[ ! -x "$program" ] || { echo "$program"; return; }
	done
}

# sanitize TOOL [OPTION...]: adds a row for psd's own kernels. They run in one process, because a tool may lose sight of
# forked ones.
sanitize() {
	tool=$1 what="compute-sanitizer $1" bar="<= 0" most_sec=$(within 60)
	shift
	if "$program" --help 2>&1 | grep -q -e --kernel-name; then set -- --kernel-name kns=_of_each "$@"; fi
	timeout -k 5 "$most_sec" "$program" --tool "$tool" "$@" "$tests" --here \
		--filter '@(cuda_@(packing|parameters|wire|layers)/*|cuda_low_rank/@(rows|steps|what)*)' \
		>"$work/sanitizer" 2>&1
	status=$?
	found=$(sed -n 's/.*SUMMARY: \([0-9]*\) \(error\|hazard\).*/\1/p' "$work/sanitizer" |
		awk '{ sum += $1; n++ } END { if (n) print sum }')
	if [ $status -eq 124 ] || [ $status -eq 137 ]; then
		absent "$what" "$bar" "an end within $most_sec s"
	elif grep -q -i 'device not supported' "$work/sanitizer"; then
		absent "$what" "$bar" "a machine that compute-sanitizer supports"
	elif [ -n "$found" ] && grep -q '^\[PASS\]' "$work/sanitizer"; then
		row "$what" "$bar" "$found" "in psd's kernels, $(grep -c '^\[PASS\]' "$work/sanitizer") tests"
		[ "$found" -eq 0 ] || keep "$what" "$work/sanitizer"
	else
		failed "$what" "$bar" "$work/sanitizer"
	fi
}

# psd reads the status of every call, and makes some that may fail: memcheck must not count those.
sanitizer() {
	program=$(find_sanitizer)
	if [ $is_stand_in = yes ] || [ -z "$program" ]; then
		for tool in memcheck racecheck; do
			absent "compute-sanitizer $tool" "<= 0" "compute-sanitizer"
		done
		return
	fi
	sanitize memcheck --report-api-errors no
	sanitize racecheck
}

# Each GPU has one worker, as in a prediction. The files that psd-sim needs elsewhere stay beside CSV.
prediction() {
	what="prediction against psd-run, median error"
	n=$((gpus < 4 ? gpus : 4)) attempts=1
	[ "$(left_sec)" -gt 120 ] || { absent "$what" "<= 7" "no time left"; return; }
	[ "$(left_sec)" -lt 240 ] || attempts=2
	rm -f "$kept-calibrated"* "$kept-measured.csv"
	timeout -k 5 "$(within 150)" "$run" calibrate --quiet --no-emulation --attempts $attempts \
		--set "cluster.workers_per_node=$n" --set train.device=cuda \
		--set "model.graph=$PWD/scenarios/models/$WORKERS_NETWORK.yaml" \
		--set "model.batch_per_worker=$WORKERS_BATCH" \
		-o "$kept-calibrated.yaml" $scenario >"$work/calibration" 2>"$work/err"
	ended $? || { failed "$what" "<= 7" "$work/err"; return; }
	for system in Hybrid PS "PS in sequence" Ring; do
		train "$work/$system" $WORKERS_NETWORK $WORKERS_BATCH fp32 "$system" "$n" $ITERATIONS ||
			{ failed "$what" "<= 7" "$work/err"; return; }
		[ -f "$work/measured" ] || head -n 1 "$work/$system" >"$work/measured"
		tail -n +2 "$work/$system" >>"$work/measured"
	done
	cp "$work/measured" "$kept-measured.csv"
	tests/gpu-predict.sh "$csv" "${run%/*}" >"$work/errors" 2>"$work/err"
	error=$(sed -n 's/^median error \(.*\) %, worst \(.*\) %$/\1 \2/p' "$work/errors")
	if [ -n "$error" ]; then
		row "$what" "<= 7" "${error% *}" "% (worst ${error#* } %; workers: $n; attempts: $attempts)"
	elif grep -q 'no psd-sim' "$work/err"; then
		absent "$what" "<= 7" "psd-sim; where it is: tests/gpu-predict.sh $csv"
	else
		failed "$what" "<= 7" "$work/err"
	fi
}

# expect_line WHAT WORDS COMMAND...: adds a row. The command must end with status 1 and one line that has the words.
expect_line() {
	what=$1 words=$2
	shift 2
	timeout -k 5 "$(within 60)" "$@" >"$work/out" 2>"$work/said"
	status=$?
	met=no
	if [ $status -eq 1 ] && [ "$(wc -l <"$work/said")" -eq 1 ] && grep -q "$words" "$work/said"; then met=yes; fi
	row "$what" "one line; status 1" "$status" "$(head -n 1 "$work/said" | tr ',\t' ';  ')" $met
	[ "$met" = yes ] || keep "$what" "$work/said"
}

faults() {
	set -- --quiet --csv --no-emulation --nodes 1 --system Ring --iterations 2 --set train.device=cuda
	if [ $is_stand_in = yes ]; then
		absent "no GPU" "one line; status 1" "a GPU that can be hidden"
	else
		expect_line "no GPU" "no NVIDIA GPU" env CUDA_VISIBLE_DEVICES=-1 "$run" "$@" $scenario
	fi
	# 275 GB of activations, none of them above the 2^31 values that cuDNN takes
	expect_line "out of memory" "has no room" "$run" "$@" --set model.batch_per_worker=1200 \
		--set "model.graph=$PWD/scenarios/models/resnet152.yaml" $scenario
	stub=$(find /usr/local/cuda/ -name libcuda.so -path '*stubs*' 2>/dev/null | head -n 1)
	if [ $is_stand_in = yes ] || [ -z "$stub" ]; then
		absent "wrong driver" "one line; status 1" "the toolkit's driver without a GPU"
	else
		mkdir -p "$work/stub" && ln -sf "$stub" "$work/stub/libcuda.so.1"
		expect_line "wrong driver" "driver" env LD_LIBRARY_PATH="$work/stub" "$run" "$@" $scenario
	fi
	absent "GPU lost in mid-run" "one line; status 1" "a GPU that can be lost; cuda_faults shows it on the stand-in"
}

# saves FOLDER END [OPTION...]: two workers train until END
saves() {
	folder=$work/$1 end=$2
	shift 2
	train "$work/saves" cifar10-quick 8 fp32 Hybrid 2 "$end" --save "$folder" "$@"
}

# Parameters and momentum, in the memory of GPU and hosts, are those of a run that was never cut.
goes_on() {
	what="a run goes on from its checkpoint"
	if saves whole 7 && saves cut 4 && saves cut 7 --resume; then
		differing=0
		for host in 0 1; do
			cmp -s "$work/whole/iteration-7/host-$host-of-2.safetensors" \
				"$work/cut/iteration-7/host-$host-of-2.safetensors" || differing=$((differing + 1))
		done
		row "$what" "<= 0" $differing "/ 2 checkpoints differ"
	else
		failed "$what" "<= 0" "$work/err"
	fi
}

for rows in $wanted; do
	if [ "$(left_sec)" -gt 20 ]; then $rows; else absent "$rows" "" "no time left"; fi
done

# ---- the table ----

[ $is_stand_in = no ] || echo "ON THE STAND-IN: no figure below is a GPU's"
echo "$card, driver ${driver:-unknown}, $version, seed $seed, $(($(date +%s) - started)) s"
{
	printf 'row\tbar\tfigure\tmet\n'
	cat "$work/table"
} | awk -F '\t' '
	{ for (i = 1; i <= 4; i++) { cell[NR, i] = $i; if (length($i) > width[i]) width[i] = length($i) } }
	END {
		line = "%-" width[1] "s  %-" width[2] "s  %-3s  %s\n" # messages may be long: last
		for (r = 1; r <= NR; r++)
			printf line, cell[r, 1], cell[r, 2], cell[r, 4], cell[r, 3]
	}'
met=$(awk -F '\t' '$4 == "yes"' "$work/table" | wc -l)
missed=$(awk -F '\t' '$4 == "no"' "$work/table" | wc -l)
echo "gpu-check: $met met, $missed missed, $(grep -c 'not there' "$work/table") not there; $csv"
[ "$missed" -eq 0 ]
