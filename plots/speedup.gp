# Speedup over workers: one colour per system; lines are predicted, ribbons their bands, hollow markers published,
# crosses published values to which a constant was fitted, squares executed. psd-plot puts before this file
#   work, out, terminal_name, is_linear, plot_title, workers_min, workers_max, workers_tics, speedup_min, speedup_max
# and writes to work: series.gp (n_series, n_published, n_fitted, n_executed, n_ribbons, has_long_names; arrays name,
# colour, variant, n_over (number of later lines that cover this one) of each series, number of each published one,
# fitted of each with fitted values, ribbon of each with a band, executed_name and executed_colour), and series-N.dat,
# published-N.dat, fitted-N.dat, executed-N.dat (workers, speedup), ribbon-N.dat (workers, low, high).
set encoding utf8
load work."/series.gp"

# A legend below the plot does not reduce its height.
n_legend = n_series + (n_published > 0) + (n_fitted > 0) + (n_executed > 0) + 1
height = 600 + (has_long_names ? 25 * (n_legend < 10 ? n_legend : 10) : 0)
if (terminal_name eq "svg") {
	set terminal svg size 960,height dynamic background rgb "white" font "Helvetica,Arial,sans-serif,15" noenhanced
} else {
	set terminal pngcairo size 1440,1.5*height background rgb "white" font "DejaVu Sans,13.5" \
		linewidth 1.5 pointscale 1.5 noenhanced
}
set output out

set title plot_title offset 0,-0.3
set xlabel "workers"
set ylabel "speedup"
set border 3 lc rgb "#444444"
set tics nomirror out scale 0.6
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
# The legend is outside the plot, so that it covers no data. Long names would need too much width beside the plot.
if (has_long_names) {
	set key outside bottom center vertical maxrows 10 Left reverse samplen 4 spacing 1.2
	set xlabel "workers\n " # the empty line keeps the legend off it
} else {
	set key outside right top Left reverse samplen 4 spacing 1.35 width 1
}

top = speedup_max > workers_max ? speedup_max : workers_max
low = speedup_min < workers_min ? speedup_min : workers_min
set format x "%g"
set format y "%g"
if (is_linear) {
	set xrange [0:workers_max * 1.04]
	set yrange [0:top * 1.04]
} else {
	set logscale x 2
	set logscale y 2
	set xrange [workers_min / 1.12:workers_max * 1.12]
	set yrange [low / 1.12:top * 1.15]
}
eval "set xtics (".workers_tics.")"

array dash[4] = [1, 4, 5, 3]
array filled[4] = [7, 9, 11, 13] # the square, 5, is for what was executed
array hollow[4] = [6, 8, 10, 12]
dash_of(v) = dash[(v - 1) % 4 + 1]
mark_of(v) = (v - 1 + int((v - 1) / 4)) % 4 + 1 # another one beside the same dash: 16 variants differ

plot \
	for [i = 1:n_ribbons] work.sprintf("/ribbon-%d.dat", ribbon[i]) using 1:2:3 with filledcurves \
		lc rgb colour[ribbon[i]] fs transparent solid 0.15 noborder notitle, \
	for [i = 1:n_series] work.sprintf("/series-%d.dat", i) using 1:2 with linespoints \
		lc rgb colour[i] dt dash_of(variant[i]) lw 2 + 2.5 * n_over[i] \
		pt filled[mark_of(variant[i])] ps 0.6 + 0.3 * n_over[i] title name[i], \
	for [i = 1:n_published] work.sprintf("/published-%d.dat", number[i]) using 1:2 with points \
		lc rgb colour[number[i]] lw 1.6 pt hollow[mark_of(variant[number[i]])] ps 1.35 notitle, \
	for [i = 1:(n_published > 0)] NaN with points lc rgb "#555555" lw 1.6 pt 6 ps 1.35 title "published", \
	for [i = 1:n_fitted] work.sprintf("/fitted-%d.dat", fitted[i]) using 1:2 with points \
		lc rgb colour[fitted[i]] lw 2.2 pt 2 ps 1.2 notitle, \
	for [i = 1:(n_fitted > 0)] NaN with points lc rgb "#555555" lw 2.2 pt 2 ps 1.2 title "fitted to published", \
	for [i = 1:n_executed] work.sprintf("/executed-%d.dat", i) using 1:2 with points \
		lc rgb executed_colour[i] lw 1.6 pt 5 ps 1.2 title n_series > 0 ? "" : executed_name[i], \
	for [i = 1:(n_executed > 0)] NaN with points lc rgb "#555555" lw 1.6 pt 5 ps 1.2 title "executed", \
	[workers_min:workers_max] x with lines lc rgb "#999999" dt 2 lw 1.4 title "ideal"
set output
