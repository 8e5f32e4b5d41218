# Writes the results of compare.awk as an HTML page without scripts and references to the folder PSD_PLOT_WORK:
# page-1.html up to the plot, page-2.html up to the timelines, page-3.html the rest. Escapes text of the input.

function escaped(text)
{
	gsub(/&/, "\\&amp;", text)
	gsub(/</, "\\&lt;", text)
	gsub(/>/, "\\&gt;", text)
	gsub(/"/, "\\&quot;", text)
	return text
}

function out(text)
{
	print text > page
}

# Style class of an error: within the bar of the median, within that of a single point, or beyond both.
function error_class(ratio)
{
	if (ratio == "")
		return ""
	if (is_beyond(absolute(ratio), worst_bar_ratio))
		return "far"
	return is_beyond(absolute(ratio), bar_ratio) ? "off" : "near"
}

function write_style()
{
	out("<style>")
	out("body { margin: 2rem auto; max-width: 112rem; padding: 0 1rem; color: #1b1b1b; background: #fff;")
	out("  font: 16px/1.5 Helvetica, Arial, sans-serif; color-scheme: light }")
	out("h1 { font-size: 1.6rem; margin: 0 0 .3rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem }")
	out(".verdicts { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0 }")
	out(".verdict { border-left: .4rem solid #888; background: #f5f5f5; padding: .6rem 1.2rem .6rem 1rem }")
	out(".verdict b { display: block; font-size: 1.7rem; line-height: 1.2 }")
	out(".met { border-color: #009e73 } .missed { border-color: #b34700 }")
	out("ul { margin: .5rem 0; padding-left: 1.2rem } " \
		"dt { font-weight: bold; margin-top: .4rem } dd { margin-left: 1.2rem }")
	out("figure { max-width: 76rem; margin: 1rem 0 } p, ul, dl { max-width: 76rem } " \
		"figcaption, .caption { color: #444; text-align: left; padding: .3rem 0 }")
	out("svg { display: block; width: 100%; height: auto }")
	out(".wide { overflow-x: auto }")
	out("table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums }")
	out("th, td { padding: .28rem .55rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd }")
	out("th { font-weight: 600 } thead th { border-bottom: 1px solid #666; vertical-align: bottom }")
	out("thead th[colspan] { text-align: center; border-bottom: 1px solid #bbb }")
	out("th.left, td.left { text-align: left } " \
		"tr.scenario th { text-align: left; padding-top: 1rem; background: #fff }")
	out(".near { background: #d6eaf6 } .off { background: #fbe0b5 } .far { background: #a83e00; color: #fff }")
	out("tr.aside td, tr.aside th { color: #666; font-style: italic } tr.aside td.far { color: #fff }")
	out(".key span { padding: .1rem .5rem; margin-right: .5rem }")
	out("</style>")
}

function write_verdict(label, figure, bar, state)
{
	out("<div class=\"verdict " state "\">" label "<b>" figure "</b>bar " bar ": " \
		(state == "met" ? "met" : state == "missed" ? "not met" : "no point is counted") "</div>")
}

function write_top(    i)
{
	page = work "/page-1.html"
	out("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")
	out("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
	out("<title>" escaped(page_title) "</title>")
	write_style()
	out("</head>\n<body>\n<h1>" escaped(page_title) "</h1>")
	out("<p>Iteration times that psd-sim predicted, against those that psd-run measured.</p>")
	out("<div class=\"verdicts\">")
	write_verdict("median absolute error", n_in_median ? percent(median_error) : "-", bar_text(bar_ratio),
		n_in_median == 0 ? "open" : is_median_met ? "met" : "missed")
	write_verdict("worst absolute error" (n_in_worst ? ", at " escaped(point_text(worst_point)) : ""),
		n_in_worst ? percent(absolute(point_error[worst_point])) : "-", bar_text(worst_bar_ratio),
		n_in_worst == 0 ? "open" : is_worst_met ? "met" : "missed")
	out("</div>\n<ul>")
	for (i = 3; i <= n_sentences; i++) # the first two are the verdicts
		out("<li>" escaped(sentence[i]) "</li>")
	out("</ul>\n<h2>Plot</h2>\n<figure>")
}

function write_head_rows(    c, span)
{
	out("<thead>\n<tr>")
	for (c = 1; c <= n_table_columns; c += span) {
		span = 1
		if (column_group[c] == "") {
			out("<th scope=\"col\" rowspan=\"2\"" (column_is_left[c] ? " class=\"left\"" : "") ">" \
				column_head[c] "</th>")
			continue
		}
		while (c + span <= n_table_columns && column_group[c + span] == column_group[c])
			span++
		out("<th scope=\"colgroup\" colspan=\"" span "\">" column_group[c] "</th>")
	}
	out("</tr>\n<tr>")
	for (c = 1; c <= n_table_columns; c++)
		if (column_group[c] != "")
			out("<th scope=\"col\">" column_head[c] "</th>")
	out("</tr>\n</thead>")
}

function class_of(p, c)
{
	return c in error_figure ? error_class(figure_error[error_figure[c], p]) : column_is_left[c] ? "left" : ""
}

function write_point(p,    c, class, line)
{
	line = "<tr" (is_in_worst[p] ? "" : " class=\"aside\"") \
		"><th scope=\"row\" class=\"left\">" escaped(cell[p, 1]) "</th>"
	for (c = 2; c <= n_table_columns; c++) {
		class = class_of(p, c)
		line = line "<td" (class == "" ? "" : " class=\"" class "\"") ">" escaped(cell[p, c]) "</td>"
	}
	out(line "</tr>")
}

function write_points(    i, p)
{
	out("<h2>Points</h2>\n<p class=\"caption\">Medians of the runs of each point; " \
		"errors are predicted / measured - 1, of runs with predictions of their own the median. " \
		"In italics: not counted.</p>\n<div class=\"wide\"><table>")
	write_head_rows()
	out("<tbody>")
	for (i = 1; i <= n_measured; i++) {
		p = measured_point[i]
		if (n_titles > 1 && (i == 1 || point_title[p] != point_title[measured_point[i - 1]]))
			out("<tr class=\"scenario\"><th scope=\"rowgroup\" colspan=\"" n_table_columns "\">" \
				escaped(printable(point_title[p])) "</th></tr>")
		write_point(p)
	}
	out("</tbody>\n</table></div>")
	out("<p class=\"key\">Errors: <span class=\"near\">up to " bar_text(bar_ratio) \
		"</span><span class=\"off\">up to " bar_text(worst_bar_ratio) \
		"</span><span class=\"far\">more</span></p>")
}

function write_kind_table(    k, class)
{
	out("<h2>Operations</h2>\n" \
		"<p class=\"caption\">Seconds of an iteration in which a worker is at operations of a kind: " \
		escaped(traced_text("predicted")) ", from one trace each.</p>\n<div class=\"wide\"><table>")
	out("<thead><tr><th scope=\"col\" class=\"left\">kind</th><th scope=\"col\">predicted s</th>" \
		"<th scope=\"col\">measured s</th><th scope=\"col\">error</th></tr></thead>\n<tbody>")
	for (k = 1; k <= n_kinds; k++) {
		class = error_class(kind_error[k])
		out("<tr><th scope=\"row\" class=\"left\">" kind_name[k] "</th><td>" \
			four_digits(kind_predicted[k]) "</td><td>" four_digits(kind_measured[k]) \
			"</td><td" (class == "" ? "" : " class=\"" class "\"") ">" \
			signed_percent(kind_error[k]) "</td></tr>")
	}
	out("</tbody>\n</table></div>")
	out("<h2>Timelines</h2>\n<p>One iteration of " escaped(traced_text("predicted")) \
		", predicted above, measured below, on the same scale of time.</p>")
	out("<figure>")
}

function write_middle()
{
	page = work "/page-2.html"
	out("<figcaption>Left, predicted against measured seconds of an iteration; the band is &plusmn;" \
		bar_text(bar_ratio) " around equality. Right, the error of the same points. " \
		"Whiskers reach over the spread of the runs.</figcaption>\n</figure>")
	write_points()
	if (n_kinds > 0)
		write_kind_table()
}

function list_of(names,    name, n, i, sorted, text, held)
{
	for (name in names) {
		sorted[++n] = name
		for (i = n; i > 1 && sorted[i - 1] > sorted[i]; i--) {
			held = sorted[i]
			sorted[i] = sorted[i - 1]
			sorted[i - 1] = held
		}
	}
	for (i = 1; i <= n; i++)
		text = text (i == 1 ? "" : ", ") sorted[i]
	return text
}

function define(word, meaning)
{
	out("<dt>" word "</dt><dd>" meaning "</dd>")
}

function write_notes(    i, files)
{
	page = work "/page-3.html"
	if (n_kinds > 0)
		out("</figure>")
	out("<h2>Notes</h2>\n<dl>")
	for (i = 1; i <= n_measured_files; i++)
		files = files (i == 1 ? "" : ", ") measured_file[i]
	define("predicted", "by psd-sim, executor " escaped(list_of(predicted_by)) \
		"; read from " escaped(predicted_file) ".")
	define("measured", "by psd-run, executor " escaped(list_of(measured_by)) \
		": the median of the runs of a point; read from " escaped(files) ".")
	if (has_calibrated)
		define("calibrated", "the calibration measured exchanges of this point, " \
			"so its error says nothing about predictions and is not counted; read from " \
			escaped(file_of_role["calibrated"]) ". Extrapolated: more workers than any calibrated point, " \
			"which had " calibrated_workers_max " at most.")
	if (n_fitted > 0)
		define("fitted", "a constant of the scenario was fitted to the published value of this point " \
			"(column is_fitted of psd-sim), so its error is not counted either.")
	define("error", "predicted / measured - 1: below 0 the prediction is too fast. " \
		"Where each run has a prediction of its own, it follows from the median of their quotients, " \
		"and can differ from that of the medians beside it.")
	define("spread", "range of the runs over their median, each run over its prediction; " \
		"with four runs or more, the range of the middle half. - with one run.")
	define("too noisy", "a point whose runs scatter more than a bar is not judged by it: above " \
		bar_text(worst_bar_ratio) " it is not counted, above " bar_text(bar_ratio) " not for the median.")
	define("compute", "seconds of an iteration in which a worker does forward and backward, " \
		"measured as time of its processor or GPU, predicted as time of the clock; " \
		"exposed communication: seconds in which it waits for data on its way.")
	define("bytes", "sent and received per node and iteration: " \
		"exact if every run counted the predicted number, else the errors of both.")
	if (n_kinds > 0)
		define("operations", "seconds of an iteration that a worker's spans of a kind cover, " \
			"overlaps counted once; the mean over the workers, " \
			"the median over the iterations without the first two where there are more." \
			(has_send() ? " Sends have no error: psd-run's end when the kernel has taken the message, " \
			"psd-sim's when the line has; the line's time is in receive." : ""))
	out("</dl>\n</body>\n</html>")
}

END {
	if (has_failed)
		exit 2
	write_top()
	write_middle()
	write_notes()
}
