# Published values against predictions: a colour for each source, hollow where a constant was fitted to the value.
# tests/validate.sh puts before this file
#   work, out, terminal_name
# and writes to work: sources.gp (n_sources, array name, checked and fitted: numbers of sources with such values),
# checked-N.dat and fitted-N.dat (published, predicted).
set encoding utf8
load work."/sources.gp"
if (terminal_name eq "svg") {
	set terminal svg size 720,480 dynamic background rgb "white" font "Helvetica,Arial,sans-serif,13" noenhanced
} else {
	set terminal pngcairo size 1080,720 background rgb "white" font "DejaVu Sans,13.5" linewidth 1.5 noenhanced
}
set output out
array colour[12] = ["#D55E00", "#E69F00", "#000000", "#8C510A", "#009E73", "#0072B2", "#CC79A7", "#56B4E9", "#999999", \
	"#444444", "#117733", "#882255"]

set xlabel "published: samples/s, tokens/s, or speedup"
set ylabel "predicted"
set border 3 lc rgb "#444444"
set tics nomirror out scale 0.6
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
set logscale xy
set format "%g"
set xrange [0.08:2000000]
set yrange [0.08:2000000]
set size ratio 1
set key outside right top Left reverse samplen 2 spacing 1.3
plot x with lines lc rgb "#666666" lw 1.2 title "equal", \
	1.2 * x with lines lc rgb "#999999" dt 2 lw 1 title "±20 %", \
	0.8 * x with lines lc rgb "#999999" dt 2 lw 1 notitle, \
	for [i in fitted] work."/fitted-".i.".dat" using 1:2 with points \
		lc rgb colour[int(i)] pt 6 ps 0.5 lw 1 notitle, \
	for [i in checked] work."/checked-".i.".dat" using 1:2 with points \
		lc rgb colour[int(i)] pt 7 ps 0.5 notitle, \
	for [i = 1:n_sources] NaN with points lc rgb colour[i] pt 7 ps 0.7 title name[i], \
	NaN with points lc rgb "#555555" pt 6 ps 0.7 title "fitted: hollow"
set output
