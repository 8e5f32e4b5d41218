#include "plots/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "plots/plot.h"
#include "plots/words.h"

enum { MOST_EVENTS = 200000, MOST_WORKERS = 256, MOST_NUMBER = 9999999, GAPS = 1200, LOOKS = 23 };

/* Colours of operations in the order of a trace's kinds, and those of text on them. */
static const struct {
	const char *colour, *ink;
} looks[LOOKS] = {
	{"#56B4E9", "#000000"}, {"#0072B2", "#ffffff"}, {"#999999", "#000000"}, {"#E69F00", "#000000"},
	{"#009E73", "#ffffff"}, {"#8C510A", "#ffffff"}, {"#CC79A7", "#000000"}, {"#F0E442", "#000000"},
	{"#D55E00", "#ffffff"}, {"#000000", "#ffffff"}, {"#117733", "#ffffff"}, {"#882255", "#ffffff"},
	{"#44AA99", "#000000"}, {"#AA4499", "#ffffff"}, {"#BBCC33", "#000000"}, {"#EE8866", "#000000"},
	{"#77AADD", "#000000"}, {"#99DDFF", "#000000"}, {"#DDAA33", "#000000"}, {"#661100", "#ffffff"},
	{"#6699CC", "#000000"}, {"#999933", "#000000"}, {"#332288", "#ffffff"},
};

struct chart {
	struct psd_figure *figure;
	const struct psd_plot_trace *trace;
	const struct psd_timeline *timeline;
	struct psd_error *err;
	unsigned wanted[MOST_WORKERS]; /* numbers of workers */
	unsigned n_wanted;
	double first_ms, last_ms;
	unsigned n_events;
	bool has_kind[PSD_TRACE_KINDS_MAX];
};

static enum psd_status refuse(const struct chart *chart, const char *text)
{
	return psd_error_set(chart->err, PSD_EINVAL, (struct psd_place){.path = chart->trace->path}, "%s", text);
}

/* ---- workers ---- */

static int compare_numbers(const void *one, const void *other)
{
	const unsigned a = *(const unsigned *)one, b = *(const unsigned *)other;

	return (a > b) - (a < b);
}

static bool read_number(const char **text, uint64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtoull(*text, &end, 10);
	*text = end;
	return *number <= MOST_NUMBER;
}

/* Reads 0-3,7. */
static bool read_workers(struct chart *chart, const char *list)
{
	for (const char *at = list;; at++) {
		uint64_t first, last;

		if (!read_number(&at, &first))
			return false;
		last = first;
		if (*at == '-' && (at++, !read_number(&at, &last)))
			return false;
		if (last < first || last - first >= MOST_WORKERS - chart->n_wanted)
			return false;
		for (; first <= last; first++)
			chart->wanted[chart->n_wanted++] = (unsigned)first;
		if (*at != ',')
			break;
		if (!at[1])
			return false;
		continue;
	}
	qsort(chart->wanted, chart->n_wanted, sizeof(chart->wanted[0]), compare_numbers);
	return true;
}

static const struct psd_plot_process *find_worker(const struct psd_plot_trace *trace, unsigned worker)
{
	for (unsigned p = 0; p < trace->n_processes; p++)
		if (trace->processes[p].worker == (int64_t)worker)
			return &trace->processes[p];
	return NULL;
}

static enum psd_status choose_workers(struct chart *chart)
{
	const char *list = chart->timeline->workers;
	unsigned n = 0;

	if (!read_workers(chart, list ? list : "0-3"))
		return psd_error_set(
			chart->err, PSD_EINVAL, PSD_NOWHERE,
			"'--workers' is '%.80s', must be a list such as 0-3 or 0,2,7, ranges rising and of "
			"256 workers at most",
			list);
	for (unsigned i = 0; i < chart->n_wanted; i++) {
		const bool is_there = find_worker(chart->trace, chart->wanted[i]);

		if (!is_there && list)
			return refuse(chart,
				      psd_figure_text(chart->figure, "there is no worker %u in it", chart->wanted[i]));
		if (is_there && (!n || chart->wanted[n - 1] != chart->wanted[i]))
			chart->wanted[n++] = chart->wanted[i];
	}
	if (n > PSD_PANELS_MAX)
		return refuse(chart,
			      psd_figure_text(chart->figure, "a timeline takes %d workers, choose with --workers",
					      PSD_PANELS_MAX));
	chart->n_wanted = n;
	return PSD_OK;
}

/* ---- events ---- */

static bool is_drawn(const struct chart *chart, const struct psd_plot_event *event)
{
	const struct psd_plot_trace *trace = chart->trace;
	const int64_t worker = event->process < trace->n_processes ? trace->processes[event->process].worker : -1;
	bool is_wanted = false;

	for (unsigned i = 0; i < chart->n_wanted; i++)
		is_wanted = is_wanted || chart->wanted[i] == worker;
	return is_wanted && (chart->timeline->iteration < 0 || event->iteration == chart->timeline->iteration);
}

static enum psd_status measure(struct chart *chart)
{
	const struct psd_plot_trace *trace = chart->trace;
	struct psd_range range = {.is_there = false};

	for (unsigned e = 0; e < trace->n_events; e++) {
		const struct psd_plot_event *event = &trace->events[e];

		if (!is_drawn(chart, event))
			continue;
		chart->n_events++;
		psd_range_add(&range, event->begin_us / 1000);
		psd_range_add(&range, (event->begin_us + event->length_us) / 1000);
		chart->has_kind[event->kind] = true;
	}
	if (chart->n_events > MOST_EVENTS)
		return refuse(chart,
			      psd_figure_text(chart->figure,
					      "more than %d events to draw, choose with --iteration and --workers",
					      MOST_EVENTS));
	if (!chart->n_events && chart->timeline->iteration > trace->last_iteration)
		return refuse(chart,
			      psd_figure_text(chart->figure, "'--iteration' is %lld, the last one in the trace is %lld",
					      (long long)chart->timeline->iteration, (long long)trace->last_iteration));
	if (!chart->n_events)
		return refuse(chart, "the chosen workers and iteration have no event");
	chart->first_ms = range.least;
	chart->last_ms = fmax(range.most, range.least + 0.001);
	chart->last_ms = fmax(chart->last_ms, range.least + chart->timeline->span_ms);
	return PSD_OK;
}

/* Text on a box: the layer without its verb, which the colour shows. */
static const char *short_name(const char *name)
{
	const char *blank = strchr(name, ' ');

	return blank ? blank + 1 : name;
}

static void draw_event(struct chart *chart, struct psd_panel *panel, struct psd_layer *layers[],
		       const struct psd_plot_event *event, double y, double *named_until)
{
	const double span = chart->last_ms - chart->first_ms, gap = span / GAPS;
	const double zero = chart->timeline->iteration >= 0 ? chart->first_ms : 0;
	const double begin = event->begin_us / 1000 - zero;
	double end = begin + event->length_us / 1000;
	const unsigned look = event->kind % LOOKS;

	/* Neighbours are told apart by a gap at the end of each box; the shortest box is still seen. */
	end = end - begin > 2 * gap ? end - gap : begin + gap;
	if (!layers[event->kind])
		layers[event->kind] = psd_figure_add_layer(
			chart->figure, panel, (struct psd_look){PSD_STYLE_BOXES, looks[look].colour, 0, 0, 0, 0, 1});
	psd_text_add(&layers[event->kind]->data, "%.6f %.6f %.6f %.6f %.3f %.3f\n", (begin + end) / 2, y, begin, end,
		     y - 0.42, y + 0.42);
	if ((end - begin) / span > 0.015 && begin >= *named_until) {
		psd_figure_add_note(chart->figure, panel,
				    (struct psd_note){.x = (begin + end) / 2,
						      .y = y,
						      .room = end - begin,
						      .text = short_name(event->name),
						      .colour = looks[look].ink});
		*named_until = end;
	}
}

static void draw_worker(struct chart *chart, const struct psd_plot_process *process)
{
	const struct psd_plot_trace *trace = chart->trace;
	struct psd_figure *figure = chart->figure;
	struct psd_panel *panel = psd_figure_add_panel(figure, process->name);
	struct psd_layer *layers[PSD_TRACE_KINDS_MAX] = {NULL};
	unsigned n_rows = 0, row_of[PSD_TRACE_THREADS_MAX] = {0};
	double named_until[PSD_TRACE_THREADS_MAX];
	const double zero = chart->timeline->iteration >= 0 ? chart->first_ms : 0;

	for (unsigned e = 0; e < trace->n_events; e++)
		if (&trace->processes[trace->events[e].process] == process && is_drawn(chart, &trace->events[e]))
			row_of[trace->events[e].thread % PSD_TRACE_THREADS_MAX] = 1;
	for (unsigned t = 0; t < PSD_TRACE_THREADS_MAX; t++) {
		named_until[t] = -INFINITY;
		if (!row_of[t])
			continue;
		row_of[t] = ++n_rows;
		psd_figure_add_tic(figure, &panel->y, n_rows, trace->threads[t] ? trace->threads[t] : "");
	}
	for (unsigned e = 0; e < trace->n_events; e++) {
		const struct psd_plot_event *event = &trace->events[e];
		const unsigned thread = event->thread % PSD_TRACE_THREADS_MAX;

		if (&trace->processes[event->process] == process && is_drawn(chart, event))
			draw_event(chart, panel, layers, event, row_of[thread], &named_until[thread]);
	}
	panel->y.low = n_rows + 0.5;
	panel->y.high = 0.5;
	panel->y.needs_all = true;
	panel->x.low = chart->first_ms - zero;
	panel->x.high = chart->last_ms - zero;
	panel->x.has_grid = true;
	psd_figure_add_round_tics(figure, &panel->x);
	panel->x.label = "time in ms";
	panel->lines = fmax(1, 1.1 * n_rows);
}

enum psd_status psd_timeline_fill(struct psd_figure *figure, const struct psd_plot_trace *trace,
				  const struct psd_timeline *timeline, double *span_ms, struct psd_error *err)
{
	struct chart chart = {.figure = figure, .trace = trace, .timeline = timeline, .err = err};
	struct psd_range bps = {.is_there = false};
	double value;
	bool is_sent = false;

	PSD_TRY(choose_workers(&chart));
	PSD_TRY(measure(&chart));
	*span_ms = chart.last_ms - chart.first_ms;
	figure->most_columns = 1;
	for (unsigned i = 0; i < chart.n_wanted; i++)
		draw_worker(&chart, find_worker(trace, chart.wanted[i]));
	for (unsigned k = 0; k < trace->n_kinds; k++) {
		if (!chart.has_kind[k])
			continue;
		psd_figure_add_entry(figure, trace->kinds[k],
				     (struct psd_look){PSD_STYLE_BOXES, looks[k % LOOKS].colour, 0, 0, 0, 0, 1});
		is_sent = is_sent || !strcmp(trace->kinds[k], "send") || !strcmp(trace->kinds[k], "receive");
	}
	if (psd_units_read_number(trace->bandwidth_bps, &value) && value > 0)
		psd_range_add(&bps, value);
	figure->title = psd_figure_text(figure, "%s: %s", psd_words_title_at(&figure->arena, trace->scenario, &bps),
					trace->system_name);
	if (timeline->iteration >= 0)
		figure->title =
			psd_figure_text(figure, "%s, iteration %lld", figure->title, (long long)timeline->iteration);
	if (*trace->executor)
		figure->title = psd_figure_text(figure, "%s (%s)", figure->title, trace->executor);
	/* otherwise a short send and a long receive look like two speeds */
	if (is_sent && !strncmp(trace->executor, "real", 4))
		figure->note = "send: until the network stack has taken the last byte; receive: from the first byte to "
			       "the last";
	return PSD_OK;
}

enum psd_status psd_plot_timeline(struct psd_figure *figure, const struct psd_plot_options *options,
				  struct psd_error *err)
{
	const struct psd_timeline timeline = {options->workers,
					      options->iteration ? (int64_t)options->iteration_number : -1, 0};
	struct psd_plot_trace trace;
	double span_ms;
	enum psd_status status = psd_plot_trace_read(&trace, options->arguments.operands[0], err);

	if (!status)
		status = psd_timeline_fill(figure, &trace, &timeline, &span_ms, err);
	psd_figure_keep(figure, &trace.arena);
	psd_plot_trace_release(&trace);
	return status;
}
