# tests/bench/real/helper.sh: functions that the scripts among the benchmarks share. They source it with the build
# folder as $1, in the repository's root.
# shellcheck shell=sh disable=SC2034
set -eu
export LC_ALL=C
# The environment's choice for OpenBLAS may be that of another processor: PyTorch then computes half as fast as with
# OpenBLAS's own choice.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS GOTO_NUM_THREADS
build=$1
here=tests/bench/real
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

skip() { echo "skipped: $1 (make deps-bench)" >&2; }

# Not whatever python3 comes first: the one that Debian's packages are for, or PYTHON, such as a virtual environment's
# with a newer PyTorch. Nor with the reference BLAS, which PyTorch takes where no other is installed: 7 GFLOP/s where
# OpenBLAS does 366.
python=${PYTHON:-/usr/bin/python3}
has_torch() {
	if [ -z "${torch_found:-}" ]; then
		torch_found=$("$python" - 2>/dev/null <<-END || echo no
			import torch
			loaded = open("/proc/self/maps").read()
			is_loaded = any(name in loaded for name in ("openblas", "mkl_", "libblis"))
			has_blas = is_loaded or torch.backends.mkl.is_available()
			print("yes" if has_blas else "no", torch.__version__)
		END
		)
		echo "PyTorch: $torch_found" >&2
	fi
	[ "${torch_found% *}" = yes ]
}

# The middle one of the numbers on standard input; nothing without numbers.
median() {
	sort -g | awk '
		{ value[NR] = $1 }
		END { if (NR) print NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'
}

# quotient A B [DIGITS]
quotient() { awk -v a="$1" -v b="$2" -v digits="${3:-3}" 'BEGIN { if (b > 0) printf "%.*f\n", digits, a / b }'; }

# is_at_least VALUE BAR: yes, no, or nothing when one is missing
is_at_least() {
	awk -v value="$1" -v bar="$2" 'BEGIN {
		if (value != "" && bar != "") print (value + 0 >= bar + 0) ? "yes" : "no"
	}'
}
is_at_most() {
	awk -v value="$1" -v bar="$2" 'BEGIN {
		if (value != "" && bar != "") print (value + 0 <= bar + 0) ? "yes" : "no"
	}'
}

# model_path NAME: prints the path of a network in this folder, or among the scenarios'
model_path() { if [ -f "$here/$1.yaml" ]; then echo "$here/$1.yaml"; else echo "scenarios/models/$1.yaml"; fi; }

parameters_of() {
	"$build/psd-sim" describe "$(model_path "$1")" | sed -n 's/.* tensors, \([0-9,]*\) parameters.*/\1/p' | tr -d ,
}

# csv_field COLUMN: prints the cells of the CSV on standard input, one line for each row
csv_field() {
	awk -F , -v column="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i; next }
		{ print $at }'
}

# run_psd MODEL BATCH SYSTEM NODES ITERATIONS [OPTION...]: psd-run's CSV
run_psd() {
	model=$(realpath "$(model_path "$1")") batch=$2 system=$3 nodes=$4 iterations=$5
	shift 5
	"$build/psd-run" --csv --quiet --set "model.graph=$model" --set "model.batch_per_worker=$batch" \
		--system "$system" --nodes "$nodes" --iterations "$iterations" "$@" $here/train.yaml
}

# run_torch MODEL BATCH ITERATIONS [OPTION...]: seconds of each iteration. The C library gives large blocks back to the
# system and clears them anew for each tensor unless told to keep them; with that PyTorch is 1.2 times faster.
run_torch() {
	model=$(model_path "$1") batch=$2 iterations=$3 parameters=$(parameters_of "$1")
	shift 3
	OMP_NUM_THREADS=1 MALLOC_TRIM_THRESHOLD_=2000000000 MALLOC_TOP_PAD_=100000000 MALLOC_MMAP_MAX_=0 \
		${torch_in:-} "$python" $here/torch_train.py "$model" --batch "$batch" --parameters "$parameters" \
		--iterations "$iterations" "$@"
}
