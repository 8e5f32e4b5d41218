# Left: predicted over measured seconds of an iteration. Right: errors of the same points. Each system has a colour and
# a marker: filled for counted points, hollow for calibrated ones, a cross for noisy ones. Whiskers reach from the least
# to the most of the runs. Before loading this file psd-plot sets
#   work, out, plot_title, systems, counted, calibrated and noisy (numbers of all systems and of those with such
#   points), drawn (names of data), n_systems, longest_name (characters in the legend), sec_low, sec_high, sec_tics,
#   bar_ratio, error_high (in per cent)
# and writes to work: series.gp (array name of each system) and counted-N.dat, calibrated-N.dat, noisy-N.dat: measured,
# least, most, predicted, error, least, most.
set encoding utf8
load work."/series.gp"

# Copies gnuplot's layout of an SVG: legend columns are as wide as the longest entry plus 5 characters of 10.5 pixels.
n_legend = n_systems + (calibrated ne "") + (noisy ne "") + 2
legend_fit = int(1128 / (10.5 * (longest_name + 5)))
legend_columns = legend_fit < 1 ? 1 : legend_fit > 5 ? 5 : legend_fit
legend_rows = (n_legend + legend_columns - 1) / legend_columns
height = 624 + 28 * legend_rows
set terminal svg size 1200,height dynamic background rgb "white" font "Helvetica,Arial,sans-serif,15" noenhanced
set output out

array colour[8] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A"]
array filled[5] = [7, 5, 9, 13, 11]
array hollow[5] = [6, 4, 8, 12, 10]
# gnuplot also evaluates the text of an empty list.
number(s) = s eq "" ? 1 : int(s)
colour_of(s) = colour[(number(s) - 1) % 8 + 1]
filled_of(s) = filled[(number(s) - 1) % 5 + 1]
hollow_of(s) = hollow[(number(s) - 1) % 5 + 1]
file(state, s) = work."/".state."-".s.".dat"
up(pixels) = pixels / real(height)

set border 3 lc rgb "#444444"
set tics nomirror out scale 0.6
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
set style fill solid 1.0 noborder
set samples 200
unset key
set multiplot title plot_title offset 0,-0.2
set tmargin at screen 1 - up(60)
set bmargin at screen up(28 * legend_rows + 96)

# Both axes have the same length, so that equal values lie on the diagonal.
set lmargin at screen 0.085
set rmargin at screen 0.475
set logscale xy
set xrange [sec_low:sec_high]
set yrange [sec_low:sec_high]
eval "set xtics (".sec_tics.")"
eval "set ytics (".sec_tics.")"
set xlabel "measured, seconds per iteration"
set ylabel "predicted, seconds per iteration"
plot "+" using 1:($1 * (1 - bar_ratio)):($1 * (1 + bar_ratio)) with filledcurves lc rgb "#e4e4e4", \
	x with lines lc rgb "#888888" dt 2 lw 1.4, \
	for [f in drawn] work."/".f.".dat" using 1:4:2:3 with xerrorbars \
		lc rgb colour_of(f[strstrt(f, "-") + 1:]) lw 1.2 pt -1, \
	for [s in counted] file("counted", s) using 1:4 with points lc rgb colour_of(s) pt filled_of(s) ps 1.1, \
	for [s in calibrated] file("calibrated", s) using 1:4 with points lc rgb "white" pt filled_of(s) ps 1.1, \
	for [s in calibrated] file("calibrated", s) using 1:4 with points \
		lc rgb colour_of(s) pt hollow_of(s) ps 1.2 lw 1.8, \
	for [s in noisy] file("noisy", s) using 1:4 with points lc rgb colour_of(s) pt 2 ps 1.1 lw 1.8

set lmargin at screen 0.575
set rmargin at screen 0.985
unset logscale y
set yrange [-error_high:error_high]
set format y "%+g"
set ytics autofreq
set ytics add ("0" 0)
set ylabel "error of the prediction, %" offset -0.6,0
plot "+" using 1:(-100 * bar_ratio):(100 * bar_ratio) with filledcurves lc rgb "#e4e4e4", \
	0 with lines lc rgb "#888888" dt 2 lw 1.4, \
	for [f in drawn] work."/".f.".dat" using 1:5:6:7 with yerrorbars \
		lc rgb colour_of(f[strstrt(f, "-") + 1:]) lw 1.2 pt -1, \
	for [s in counted] file("counted", s) using 1:5 with points lc rgb colour_of(s) pt filled_of(s) ps 1.1, \
	for [s in calibrated] file("calibrated", s) using 1:5 with points lc rgb "white" pt filled_of(s) ps 1.1, \
	for [s in calibrated] file("calibrated", s) using 1:5 with points \
		lc rgb colour_of(s) pt hollow_of(s) ps 1.2 lw 1.8, \
	for [s in noisy] file("noisy", s) using 1:5 with points lc rgb colour_of(s) pt 2 ps 1.1 lw 1.8

# One legend for both plots, as wide as the page.
set lmargin at screen 0.04
set rmargin at screen 0.98
set tmargin at screen up(28 * legend_rows + 12)
set bmargin at screen up(8)
unset border
unset tics
unset grid
unset xlabel
unset ylabel
set yrange [0:1]
set key inside center center vertical maxrows legend_rows Left reverse samplen 2 spacing 1.25 width 1
legend = 'NaN with filledcurves lc rgb "#e4e4e4" title sprintf("within ±%g %%", 100 * bar_ratio)'
legend = legend.', NaN with lines lc rgb "#888888" dt 2 lw 1.4 title "predicted = measured"'
legend = legend.', for [s in systems] NaN with points lc rgb colour_of(s) pt filled_of(s) ps 1.1 title name[number(s)]'
# A loop over no data would still take a line of the legend.
if (calibrated ne "") {
	legend = legend.', NaN with points lc rgb "#555555" pt 6 ps 1.2 lw 1.8 title "calibrated (hollow)"'
}
if (noisy ne "") {
	legend = legend.', NaN with points lc rgb "#555555" pt 2 ps 1.1 lw 1.8 title "too noisy"'
}
eval "plot ".legend
unset multiplot
set output
