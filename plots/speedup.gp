# Speedup over workers: one colour per system, lines predicted, hollow markers published. Set by psd-plot before this is loaded:
#   work        folder with the data files series-N.dat (workers speedup) and published-N.dat
#   series.gp   in work: n_series, n_published, the arrays name[], colour[], dash[] (N) and of published series number[]
#   terminal_name, out, plot_title, is_linear, workers_min, workers_max, speedup_max, has_legend_note
set encoding utf8
load work."/series.gp"

font_name = terminal_name eq "svg" ? "Helvetica,Arial,sans-serif" : "DejaVu Sans"
legend_columns = 0
if (terminal_name eq "svg") {
	set terminal svg size 960,600 dynamic background rgb "white" font font_name.",15" noenhanced
} else {
	set terminal pngcairo size 1440,900 background rgb "white" font font_name.",13.5" linewidth 1.5 pointscale 1.5 noenhanced
}
set output out

set title plot_title offset 0,-0.3
set xlabel "workers"
set ylabel "speedup over one worker"
set border 3 lc rgb "#444444"
set tics nomirror out scale 0.6
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
# Outside the plot: no legend lies over data.
set key outside right top Left reverse samplen 2.6 spacing 1.35 width 1

if (is_linear) {
	set xrange [0:workers_max * 1.04]
	set yrange [0:(speedup_max > workers_max ? speedup_max : workers_max) * 1.04]
} else {
	set logscale x 2
	set logscale y 2
	low = speedup_min < workers_min ? speedup_min : workers_min
	set xrange [workers_min / 1.12:workers_max * 1.12]
	set yrange [(low < 1 ? low : 1) / 1.12:(speedup_max > workers_max ? speedup_max : workers_max) * 1.15]
	set format y "%g"
}
if (!is_linear) { eval "set xtics (".workers_tics.")" }

plot for [i = 1:n_series] work.sprintf("/series-%d.dat", i) using 1:2 with linespoints \
		lc rgb colour[i] dt dash[i] lw 2 pt 7 ps 0.55 title name[i], \
	for [i = 1:n_published] work.sprintf("/published-%d.dat", number[i]) using 1:2 with points \
		lc rgb colour[number[i]] lw 1.6 pt 6 ps 1.35 notitle, \
	for [i = 1:(n_published > 0)] NaN with points lc rgb "#555555" lw 1.6 pt 6 ps 1.35 title "published", \
	[workers_min:workers_max] x with lines lc rgb "#999999" dt 2 lw 1.4 title "ideal"
set output
