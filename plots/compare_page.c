/* The comparison as an HTML page without scripts and references. Text of the input is escaped. */
#include <math.h>
#include <string.h>

#include "plots/compare.h"

struct page {
	struct psd_text *text;
	const struct psd_comparison *comparison;
};

static const char style[] =
	"<style>\n"
	"body { margin: 2rem auto; max-width: 112rem; padding: 0 1rem; color: #1b1b1b; background: #fff;\n"
	"  font: 16px/1.5 Helvetica, Arial, sans-serif; color-scheme: light }\n"
	"h1 { font-size: 1.6rem; margin: 0 0 .3rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem }\n"
	".verdicts { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0 }\n"
	".verdict { border-left: .4rem solid #888; background: #f5f5f5; padding: .6rem 1.2rem .6rem 1rem }\n"
	".verdict b { display: block; font-size: 1.7rem; line-height: 1.2 }\n"
	".met { border-color: #009e73 } .missed { border-color: #b34700 }\n"
	"ul { margin: .5rem 0; padding-left: 1.2rem } dt { font-weight: bold; margin-top: .4rem } dd { margin-left: "
	"1.2rem }\n"
	"figure { max-width: 76rem; margin: 1rem 0 } p, ul, dl { max-width: 76rem } "
	"figcaption, .caption { color: #444; text-align: left; padding: .3rem 0 }\n"
	"svg { display: block; width: 100%; height: auto }\n"
	".wide { overflow-x: auto }\n"
	"table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums }\n"
	"th, td { padding: .28rem .55rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd }\n"
	"th { font-weight: 600 } thead th { border-bottom: 1px solid #666; vertical-align: bottom }\n"
	"thead th[colspan] { text-align: center; border-bottom: 1px solid #bbb }\n"
	"th.left, td.left { text-align: left } "
	"tr.scenario th { text-align: left; padding-top: 1rem; background: #fff }\n"
	".near { background: #d6eaf6 } .off { background: #fbe0b5 } .far { background: #a83e00; color: #fff }\n"
	"tr.aside td, tr.aside th { color: #666; font-style: italic } tr.aside td.far { color: #fff }\n"
	".key span { padding: .1rem .5rem; margin-right: .5rem }\n"
	"</style>\n";

static void add(struct page *page, const char *text)
{
	psd_text_add_bytes(page->text, text, strlen(text));
}

static void add_escaped(struct page *page, const char *text)
{
	psd_words_add_escaped(page->text, text);
}

/* Class of an error: within the bar of the median, within that of a single point, or beyond both. */
static const char *class_of(const struct page *page, double error)
{
	if (isnan(error))
		return "";
	if (psd_is_beyond(fabs(error), page->comparison->worst_ratio))
		return "far";
	return psd_is_beyond(fabs(error), page->comparison->bar_ratio) ? "off" : "near";
}

static void add_class(struct page *page, const char *class)
{
	if (*class)
		psd_text_add(page->text, " class=\"%s\"", class);
}

/* ---- the top ---- */

static void add_verdict(struct page *page, const char *label, const struct psd_compared_point *at, const char *value,
			double bar, bool is_counted, bool is_met)
{
	psd_text_add(page->text, "<div class=\"verdict %s\">%s%s",
		     !is_counted ? "open"
		     : is_met	 ? "met"
				 : "missed",
		     label, at ? ", at " : "");
	if (at)
		add_escaped(page, psd_compared_name(page->comparison, at));
	psd_text_add(page->text, "<b>%s</b>bar %s: %s</div>\n", value, psd_compared_bar(page->comparison, bar),
		     !is_counted ? "no point is counted"
		     : is_met	 ? "met"
				 : "not met");
}

static void add_top(struct page *page)
{
	const struct psd_comparison *comparison = page->comparison;
	const char *sentences[PSD_SENTENCES_MAX];
	const unsigned n_sentences = psd_compared_summary(comparison, sentences);
	const double worst = comparison->worst ? fabs(comparison->worst->errors[PSD_COMPARED_ITERATION]) : NAN;

	add(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
	add_escaped(page, comparison->title);
	add(page, "</title>\n");
	add(page, style);
	add(page, "</head>\n<body>\n<h1>");
	add_escaped(page, comparison->title);
	add(page, "</h1>\n<p>Iteration times that psd-sim predicted, against those that psd-run measured.</p>\n"
		  "<div class=\"verdicts\">\n");
	add_verdict(page, "median absolute error", NULL, psd_compared_percent(comparison, comparison->median_error),
		    comparison->bar_ratio, comparison->n_in_median, comparison->is_median_met);
	add_verdict(page, "worst absolute error", comparison->worst, psd_compared_percent(comparison, worst),
		    comparison->worst_ratio, comparison->n_in_worst, comparison->is_worst_met);
	add(page, "</div>\n<ul>\n");
	for (unsigned i = 2; i < n_sentences; i++) { /* the first two are the verdicts */
		add(page, "<li>");
		add_escaped(page, sentences[i]);
		add(page, "</li>\n");
	}
	add(page, "</ul>\n<h2>Plot</h2>\n<figure>\n");
}

/* ---- tables ---- */

static void add_heads(struct page *page)
{
	const struct psd_compared_column *columns = psd_compared_columns;

	add(page, "<thead>\n<tr>\n");
	for (unsigned c = 0, span; c < PSD_COMPARED_COLUMNS; c += span) {
		span = 1;
		if (!*columns[c].group) {
			psd_text_add(page->text, "<th scope=\"col\" rowspan=\"2\"%s>%s</th>\n",
				     columns[c].is_left ? " class=\"left\"" : "", columns[c].head);
			continue;
		}
		while (c + span < PSD_COMPARED_COLUMNS && !strcmp(columns[c + span].group, columns[c].group))
			span++;
		psd_text_add(page->text, "<th scope=\"colgroup\" colspan=\"%u\">%s</th>\n", span, columns[c].group);
	}
	add(page, "</tr>\n<tr>\n");
	for (unsigned c = 0; c < PSD_COMPARED_COLUMNS; c++)
		if (*columns[c].group)
			psd_text_add(page->text, "<th scope=\"col\">%s</th>\n", columns[c].head);
	add(page, "</tr>\n</thead>\n");
}

static void add_point(struct page *page, const struct psd_compared_point *point)
{
	psd_text_add(page->text, "<tr%s><th scope=\"row\" class=\"left\">",
		     point->is_in_worst ? "" : " class=\"aside\"");
	add_escaped(page, psd_compared_cell(page->comparison, point, 0));
	add(page, "</th>");
	for (unsigned c = 1; c < PSD_COMPARED_COLUMNS; c++) {
		const struct psd_compared_column *column = &psd_compared_columns[c];

		add(page, "<td");
		add_class(page, column->figure >= 0 ? class_of(page, point->errors[column->figure])
				: column->is_left   ? "left"
						    : "");
		add(page, ">");
		add_escaped(page, psd_compared_cell(page->comparison, point, c));
		add(page, "</td>");
	}
	add(page, "</tr>\n");
}

static void add_points(struct page *page)
{
	const struct psd_comparison *comparison = page->comparison;
	const char *title = NULL;

	add(page, "<h2>Points</h2>\n<p class=\"caption\">Medians of the runs of each point; errors are predicted / "
		  "measured - 1, of runs with predictions of their own the median. In italics: not counted.</p>\n"
		  "<div class=\"wide\"><table>\n");
	add_heads(page);
	add(page, "<tbody>\n");
	for (unsigned m = 0; m < comparison->n_measured; m++) {
		const struct psd_compared_point *point = comparison->measured[m];

		if (comparison->n_titles > 1 && (!title || strcmp(title, point->title) != 0)) {
			psd_text_add(page->text, "<tr class=\"scenario\"><th scope=\"rowgroup\" colspan=\"%d\">",
				     PSD_COMPARED_COLUMNS);
			add_escaped(page, point->title);
			add(page, "</th></tr>\n");
		}
		title = point->title;
		add_point(page, point);
	}
	add(page, "</tbody>\n</table></div>\n");
	psd_text_add(page->text,
		     "<p class=\"key\">Errors: <span class=\"near\">up to %s</span><span class=\"off\">up to %s</span>"
		     "<span class=\"far\">more</span></p>\n",
		     psd_compared_bar(comparison, comparison->bar_ratio),
		     psd_compared_bar(comparison, comparison->worst_ratio));
}

static void add_kinds(struct page *page)
{
	const struct psd_comparison *comparison = page->comparison;

	add(page,
	    "<h2>Operations</h2>\n<p class=\"caption\">Seconds of an iteration in which a worker is at operations of "
	    "a kind: ");
	add_escaped(page, comparison->traced);
	add(page,
	    ", from one trace each.</p>\n<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\" class=\"left\">"
	    "kind</th><th scope=\"col\">predicted s</th><th scope=\"col\">measured s</th><th scope=\"col\">error</th>"
	    "</tr></thead>\n<tbody>\n");
	for (unsigned k = 0; k < comparison->n_kinds; k++) {
		const struct psd_compared_kind *kind = &comparison->kinds[k];

		psd_text_add(page->text, "<tr><th scope=\"row\" class=\"left\">%s</th><td>%s</td><td>%s</td><td",
			     kind->name, psd_compared_seconds(comparison, kind->predicted),
			     psd_compared_seconds(comparison, kind->measured));
		add_class(page, class_of(page, kind->error));
		psd_text_add(page->text, ">%s</td></tr>\n", psd_compared_error(comparison, kind->error));
	}
	add(page, "</tbody>\n</table></div>\n<h2>Timelines</h2>\n<p>One iteration of ");
	add_escaped(page, comparison->traced);
	add(page, ", predicted above, measured below, on the same scale of time.</p>\n<figure>\n");
}

/* ---- notes ---- */

static void begin_note(struct page *page, const char *word)
{
	psd_text_add(page->text, "<dt>%s</dt><dd>", word);
}

static void add_note(struct page *page, const char *word, const char *meaning)
{
	begin_note(page, word);
	add(page, meaning);
	add(page, "</dd>\n");
}

static void add_sources(struct page *page)
{
	const struct psd_comparison *comparison = page->comparison;

	begin_note(page, "predicted");
	add(page, "by psd-sim, executor ");
	add_escaped(page, comparison->predicted_by);
	add(page, "; read from ");
	add_escaped(page, comparison->predicted_path);
	add(page, ".</dd>\n");
	begin_note(page, "measured");
	add(page, "by psd-run, executor ");
	add_escaped(page, comparison->measured_by);
	add(page, ": the median of the runs of a point; read from ");
	for (unsigned i = 0; i < comparison->n_measured_paths; i++) {
		add(page, i ? ", " : "");
		add_escaped(page, comparison->measured_paths[i]);
	}
	add(page, ".</dd>\n");
	if (!comparison->calibrated_path)
		return;
	begin_note(page, "calibrated");
	add(page,
	    "the calibration measured exchanges of this point, so its error says nothing about predictions and is not "
	    "counted; read from ");
	add_escaped(page, comparison->calibrated_path);
	psd_text_add(page->text,
		     ". Extrapolated: more workers than any calibrated point, which had %.0f at most.</dd>\n",
		     comparison->calibrated_workers_most);
}

static void add_notes(struct page *page)
{
	const struct psd_comparison *comparison = page->comparison;

	add(page, "<h2>Notes</h2>\n<dl>\n");
	add_sources(page);
	if (comparison->n_fitted)
		add_note(page, "fitted",
			 "a constant of the scenario was fitted to the published value of this point (column is_fitted "
			 "of psd-sim), so its error is not counted either.");
	add_note(page, "error",
		 "predicted / measured - 1: below 0 the prediction is too fast. Where each run has a prediction of its "
		 "own, "
		 "it follows from the median of their quotients, and can differ from that of the medians beside it.");
	add_note(page, "spread",
		 "range of the runs over their median, each run over its prediction; with four runs or more, the range "
		 "of the middle half. - with one run.");
	begin_note(page, "too noisy");
	psd_text_add(
		page->text,
		"a point whose runs scatter more than a bar is not judged by it: above %s it is not counted, above %s "
		"not for the median.</dd>\n",
		psd_compared_bar(comparison, comparison->worst_ratio),
		psd_compared_bar(comparison, comparison->bar_ratio));
	add_note(page, "compute",
		 "seconds of an iteration in which a worker does forward and backward, measured as time of its "
		 "processor or GPU, predicted as time of the clock; exposed communication: seconds in which it waits "
		 "for data on its way.");
	add_note(page, "bytes",
		 "sent and received per node and iteration: exact if every run counted the predicted number, else the "
		 "errors of both.");
	if (comparison->n_kinds)
		add_note(
			page, "operations",
			psd_compared_has_sends(comparison)
				? "seconds of an iteration that a worker's spans of a kind cover, overlaps counted "
				  "once; the "
				  "mean over the workers, the median over the iterations without the first two where "
				  "there "
				  "are more. Sends have no error: psd-run's end when the kernel has taken the message, "
				  "psd-sim's when the line has; the line's time is in receive."
				: "seconds of an iteration that a worker's spans of a kind cover, overlaps counted "
				  "once; the mean over the workers, the median over the iterations without the first "
				  "two where there are more.");
	add(page, "</dl>\n</body>\n</html>\n");
}

void psd_compared_add_page(struct psd_text *text, const struct psd_comparison *comparison, const struct psd_text *plot,
			   const struct psd_text *predicted, const struct psd_text *measured)
{
	struct page page = {text, comparison};

	add_top(&page);
	psd_canvas_embed(text, plot, "plot-", "Predicted against measured seconds of an iteration, and the errors");
	psd_text_add(
		text,
		"<figcaption>Left, predicted against measured seconds of an iteration; the band is &plusmn;%s around "
		"equality. Right, the error of the same points. Whiskers reach over the spread of the "
		"runs.</figcaption>\n</figure>\n",
		psd_compared_bar(comparison, comparison->bar_ratio));
	add_points(&page);
	if (comparison->n_kinds) {
		add_kinds(&page);
		psd_canvas_embed(text, predicted, "predicted-", "Timeline, predicted");
		psd_canvas_embed(text, measured, "measured-", "Timeline, measured");
		add(&page, "</figure>\n");
	}
	add_notes(&page);
}
