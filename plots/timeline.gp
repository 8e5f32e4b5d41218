# Timeline of a trace: a band for each worker, a row for each of its threads, a box for each event. Before loading this
# file psd-plot sets
#   work, out, terminal_name, plot_title, kinds (numbers of the categories that occur), categories (all names),
#   has_names, n_rows, first_ms, last_ms, note, the tics and labels of rows and bands
# and writes to work: boxes-N.dat (x y left right top bottom) of each category, names.dat (x y text category) of boxes
# wide enough for a name.
set encoding utf8

height = 165 + 24 * n_rows
if (terminal_name eq "svg") {
	set terminal svg size 1200,height dynamic background rgb "white" font "Helvetica,Arial,sans-serif,14" noenhanced
	name_font = ",10"
} else {
	set terminal pngcairo size 1800,height * 1.5 background rgb "white" font "DejaVu Sans,12.5" \
		linewidth 1.5 noenhanced
	name_font = ",8.5"
}
set output out

# Colours, in the order of the trace's kinds.
array colour[23] = ["#56B4E9", "#0072B2", "#999999", "#E69F00", "#009E73", "#8C510A", \
	"#CC79A7", "#F0E442", "#D55E00", "#000000", "#117733", "#882255", "#44AA99", "#AA4499", \
	"#BBCC33", "#EE8866", "#77AADD", "#99DDFF", \
	"#DDAA33", "#661100", "#6699CC", "#999933", "#332288"]
array ink[23] = [0x000000, 0xffffff, 0x000000, 0x000000, 0xffffff, 0xffffff, \
	0x000000, 0x000000, 0xffffff, 0xffffff, 0xffffff, 0xffffff, 0x000000, 0xffffff, 0x000000, \
	0x000000, 0x000000, 0x000000, 0x000000, 0xffffff, 0x000000, 0x000000, 0xffffff]

set title plot_title offset 0,-0.3
# The empty line keeps the legend away from the axis.
set xlabel "time in ms".(strlen(note) ? "      (".note.")" : "")."\n "
set format x "%g"
set border 1 lc rgb "#444444"
set xtics nomirror out scale 0.6
set ytics nomirror scale 0
set grid xtics lt 1 lw 0.6 lc rgb "#dddddd"
set lmargin 17
set key outside bottom center horizontal samplen 1.6 spacing 1.2 Left reverse
set xrange [first_ms:last_ms]
set yrange [n_rows:0]
set style fill solid 1.0 noborder

plot for [k in kinds] work."/boxes-".k.".dat" using 1:2:3:4:5:6 with boxxyerror \
		lc rgb colour[int(k)] title word(categories, int(k)), \
	for [i = 1:has_names] work."/names.dat" using 1:2:3:(ink[int($4)]) with labels \
		font name_font tc rgb variable noenhanced notitle
set output
