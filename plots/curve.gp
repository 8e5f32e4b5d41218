# Top-1 over epochs, or seconds over bucket size: lines are curves, dashed levels are systems without a size. Before
# loading this file psd-plot sets work, out, terminal_name, plot_title, is_log, is_training, n_series, n_levels, x_min,
# x_max, y_min, y_max, x_tics and the arrays name, colour, n_over (number of later curves that cover this one), level,
# level_name, level_colour and level_dash. It writes to work: series-N.dat (x, y) and, if is_training, tests-N.dat.
set encoding utf8
if (terminal_name eq "svg") {
	set terminal svg size 960,600 dynamic background rgb "white" font "Helvetica,Arial,sans-serif,15" noenhanced
} else {
	set terminal pngcairo size 1440,900 background rgb "white" font "DejaVu Sans,13.5" \
		linewidth 1.5 pointscale 1.5 noenhanced
}
set output out
set title plot_title offset 0,-0.3
set border 3 lc rgb "#444444"
set tics nomirror out scale 0.6
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
set key outside right top Left reverse samplen 4 spacing 1.35 width 1
if (is_log) {
	set xlabel "epochs"
	set ylabel is_training ? "top-1 of training samples, %" : "top-1 of test samples, %"
	set xrange [0:x_max > 0 ? x_max : 1]
	set yrange [0:100]
} else {
	set xlabel "tensors are gathered to"
	set ylabel "iteration, ms"
	set logscale x 2
	set xrange [x_min / 1.3:x_max * 1.3]
	set yrange [0:y_max * 1.08]
	eval "set xtics rotate by -45 (".x_tics.")"
}
plot \
	for [i = 1:n_series] work.sprintf("/series-%d.dat", i) using 1:2 with linespoints \
		lc rgb colour[i] lw 2 + 2.5 * n_over[i] pt 7 ps 0.6 + 0.3 * n_over[i] title name[i], \
	for [i = 1:is_training * n_series] work.sprintf("/tests-%d.dat", i) using 1:2 with points \
		lc rgb colour[i] lw 1.6 pt 6 ps 1.6 notitle, \
	for [i = 1:is_training] NaN with points lc rgb "#555555" lw 1.6 pt 6 ps 1.6 title "test samples", \
	for [i = 1:n_levels] level[i] with lines lc rgb level_colour[i] dt level_dash[i] lw 1.6 title level_name[i]
set output
