#!/bin/sh
# tests/accuracy.sh BUILD [KEY=VALUE...]: predicts every iteration that traces/measured/ has on record, without running
# anything, and prints how far predictions are off. The README there describes the form of a record. The settings
# replace keys of the scenarios, so that the worth of a constant shows: `make accuracy SET=cluster.machine.message=0s`
# predicts without the processor time of messages. All errors are in BUILD/accuracy/errors.csv. The script fails if half
# of the points are off by more than 5 %. It ends with status 2 if fewer than 100 points are on record, or one of them
# cannot be read. MEASURED_DIR: another folder of records.
# Columns `own` are of predictions in which layers are as quick as in the run itself: their times are multiplied by one
# factor, the run's compute_sec over the predicted one. They show errors without changes of the processor's speed
# between the measurement of layers and the run.
set -eu
export LC_ALL=C
build=$1
shift
out=$build/accuracy
records=${MEASURED_DIR:-traces/measured}
least_points=100

# check_record FILE: checks every cell that is used, and the row it is in; prints the number of points
check_record() {
	awk -F , '
		function refuse(what) {
			printf "%s:%d: %s\n", FILENAME, FNR, what | "cat >&2"
			has_failed = 1
			exit 2
		}
		function is_number(cell) { return cell ~ /^[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$/ }
		function check(column, is_fine, accepted) {
			if (!is_fine) refuse("\047" columns[column] "\047 is \047" $column "\047, must be " accepted)
		}
		/^# batch: [1-9][0-9]*$/ { has_batch = 1 }
		/^#/ { next }
		!n_columns {
			expected = "nodes,bandwidth,system,iteration_sec,compute_sec,drift_ratio,reason,gemm,"
			if (!has_batch) refuse("the head above needs a line \047# batch: ...\047")
			if (index($0, expected) != 1) refuse("the columns must begin with \047" expected "\047")
			n_columns = split($0, columns)
			next
		}
		{
			if (NF != n_columns) refuse(NF " cells, must be the " n_columns " of the columns")
			check(1, $1 ~ /^[1-9][0-9]*$/, "a whole number, 1 or more")
			for (c = 4; c <= 5; c++) check(c, is_number($c) && $c > 0, "a number of seconds above 0")
			check(6, is_number($6), "a number, 0 or more")
			for (c = 9; c <= NF; c++) check(c, is_number($c), "a number of microseconds, 0 or more")
			n++
		}
		END { if (!has_failed) print n + 0 }
	' "$1"
}

n_points=0
for file in "$records"/*/*.csv; do
	n=$(check_record "$file") || exit 2
	n_points=$((n_points + n))
done
if [ "$n_points" -lt "$least_points" ]; then
	echo "accuracy: $records has $n_points runs on record, must be $least_points or more" >&2
	exit 2
fi
rm -rf "$out"
mkdir -p "$out"
for setting in "$@"; do
	shift
	set -- "$@" --set "$setting"
done

# write_profiles RECORD NAME: writes a profile of the layers of each of its points, NAME-1.csv and so on
write_profiles() {
	awk -F , -v "out=$out/$2" '
		sub(/^# batch: /, "") { batch = $0; next }
		/^#/ { next }
		!n_columns { n_columns = split($0, columns); next }
		{
			file = out "-" ++n ".csv"
			print "# batch: " batch "\n# kind: measured\n# origin: " FILENAME >file
			print "# device: cpu\n# gemm_flops_per_sec: " $8 >file
			print "layer,forward_sec,backward_sec" >file
			for (c = 9; c < n_columns; c += 2) {
				layer = columns[c]
				sub(/\.forward_us$/, "", layer)
				printf "%s,%.7f,%.7f\n", layer, 1e-6 * $c, 1e-6 * $(c + 1) >file
			}
			close(file)
		}
	' "$1"
}

# seconds COLUMN: prints a column of the one result of psd-sim --csv; the title, in front of it, may have commas
seconds() {
	awk -F , -v column="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) behind = NF - i }
		NR == 2 { print $(NF - behind) }
	' "$out/result.csv"
}

# scale_profile COMPUTE_SEC PREDICTED_SEC FILE: prints a profile with the times of its layers in this ratio
scale_profile() {
	awk -F , -v ratio="$1/$2" '
		BEGIN { split(ratio, terms, "/") }
		/^#/ || /^layer,/ { print; next }
		{ printf "%s,%.7f,%.7f\n", $1, $2 * terms[1] / terms[2], $3 * terms[1] / terms[2] }
	' "$3"
}

# predict_point PROFILE [OPTION...]: writes psd-sim's result for the point that predict() reads, with that profile
predict_point() {
	profile=$1
	shift
	"$build/psd-sim" --csv --quiet --system "$system" --set "compute.profile=$profile" \
		--set "sweep.nodes=$nodes" --set "cluster.network.bandwidth=$bandwidth" "$@" \
		"$out/$of.yaml" >"$out/result.csv"
}

# predict RECORD NAME [OPTION...]: appends a line to errors.csv for each point
predict() {
	record=$1 of=$2 n=0
	shift 2
	sed "s|\.\./models/|$PWD/scenarios/models/|; s|^compute: .*|compute: {profile: $of-1.csv}|" \
		"scenarios/execute/$of.yaml" >"$out/$of.yaml"
	grep -v '^#' "$record" | tail -n +2 >"$out/$of-points.csv"
	while IFS=, read -r nodes bandwidth system measured compute drift reason _; do
		n=$((n + 1))
		predict_point "$of-$n.csv" "$@"
		predicted=$(seconds iteration_sec)
		scale_profile "$compute" "$(seconds compute_sec)" "$out/$of-$n.csv" >"$out/own.csv"
		predict_point own.csv "$@"
		own=$(seconds iteration_sec)
		echo "$of,$nodes,$bandwidth,$system,$measured,$predicted,$own,$drift,$reason"
	done <"$out/$of-points.csv" >>"$out/errors.csv"
}

# table: prints the summary of errors.csv
table() {
	awk -F , '
		function magnitude(error) { return error < 0 ? -error : error }
		function note(kind, group, error, own) {
			if (!(group in n)) groups[kind, ++n_groups[kind]] = group
			errors[group, ++n[group]] = error
			owns[group, n[group]] = own
		}
		# The result is in `sorted`.
		function sort(group, values, sign, i, j, value) {
			for (i = 1; i <= n[group]; i++) {
				value = sign ? values[group, i] : magnitude(values[group, i])
				for (j = i; j > 1 && sorted[j - 1] > value; j--) sorted[j] = sorted[j - 1]
				sorted[j] = value
			}
		}
		function quantile(group, ratio) { return sorted[int(1 + ratio * (n[group] - 1) + 0.5)] }
		NR > 1 {
			error = 100 * ($6 / $5 - 1)
			own = 100 * ($7 / $5 - 1)
			note(1, "all", error, own)
			note(2, $1, error, own)
			note(3, $2 " nodes", error, own)
			note(4, $3, error, own)
			note(5, $4, error, own)
			if (magnitude(error) > 15)
				listed[++n_listed] = sprintf( \
					"  %s, %s nodes, %s, %s: %.4g s, predicted %.4g s, %+.1f %%: %s",
					$1, $2, $3, $4, $5, $6, error, $9 == "" ? "unexplained" : $9)
		}
		END {
			printf "%-26s %6s %8s %8s %8s %8s %8s %s\n", "error in %", "points", "median",
				"9 in 10", "worst", "bias", "own med.", " own worst"
			for (kind = 1; kind <= 5; kind++) for (g = 1; g <= n_groups[kind]; g++) {
				group = groups[kind, g]
				sort(group, errors, 1)
				bias = quantile(group, 0.5)
				sort(group, owns, 0)
				own = sprintf("%8.1f %9.1f", quantile(group, 0.5), sorted[n[group]])
				sort(group, errors, 0)
				printf "%-26s %6d %8.1f %8.1f %8.1f %+8.1f %s\n", group, n[group],
					quantile(group, 0.5), quantile(group, 0.9), sorted[n[group]], bias, own
				if (kind == 1) { median = quantile(group, 0.5); worst = sorted[n[group]] }
			}
			if (n_listed) print "off by more than 15 %:"
			for (i = 1; i <= n_listed; i++) print listed[i]
			printf "accuracy: median %.1f %% of %d, worst %.1f %%\n", median, n["all"], worst
			exit (median > 5)
		}
	' "$out/errors.csv"
}

echo "network,nodes,bandwidth,system,measured_sec,predicted_sec,own_speed_sec,drift_ratio,reason" >"$out/errors.csv"
for file in "$records"/*/*.csv; do
	name=$(basename "$file" .csv)
	write_profiles "$file" "$name"
	# shellcheck disable=SC2046
	predict "$file" "$name" $(sed -n 's/^# \([a-z_]*\.[a-z_.]*\): \(.*\)/--set \1=\2/p' "$file") "$@"
done
if ! table; then
	echo "accuracy: half of the points are off by more than 5 %" >&2
	exit 1
fi
