/* Seconds of each kind of operation, from two traces of one point, and their timelines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "plots/compare.h"
#include "plots/plot.h"
#include "plots/timeline.h"
#include "plots/trace.h"

enum { FIRST_STEADY = 2 }; /* as in psd-run: the iterations before it fill the pipeline */

static bool is_counted(const struct psd_plot_trace *trace, const struct psd_plot_event *event)
{
	return event->iteration >= 0 && event->process < trace->n_processes &&
	       trace->processes[event->process].worker >= 0;
}

static int64_t first_iteration(const struct psd_plot_trace *trace)
{
	return trace->last_iteration >= FIRST_STEADY ? FIRST_STEADY : 0;
}

/* ---- seconds ---- */

/* Orders events by kind, iteration, worker and begin. */
static int compare_events(const void *one, const void *other)
{
	const struct psd_plot_event *a = one, *b = other;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->iteration != b->iteration)
		return a->iteration < b->iteration ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->begin_us > b->begin_us) - (a->begin_us < b->begin_us);
}

/* Microseconds that n events of one worker, ordered by begin, cover; an overlap counts once. */
static double covered_us(const struct psd_plot_event *events, unsigned n)
{
	double until = events[0].begin_us, sum = 0;

	for (unsigned i = 0; i < n; i++) {
		const double from = fmax(events[i].begin_us, until), end = events[i].begin_us + events[i].length_us;

		if (end > from) {
			sum += end - from;
			until = end;
		}
	}
	return sum;
}

/* Sets seconds[k] for each kind: the mean over the workers, the median over the iterations in which any worker does
 * anything; NaN: the kind does not occur. */
static enum psd_status measure_kinds(const struct psd_plot_trace *trace, double *seconds, struct psd_error *err)
{
	const size_t n_iterations = (size_t)trace->last_iteration + 1;
	struct psd_plot_event *events = malloc((trace->n_events + 1) * sizeof(*events));
	double *sums = calloc(n_iterations * trace->n_kinds + 1, sizeof(*sums)),
	       *values = malloc((n_iterations + 1) * sizeof(*values));
	bool *is_iteration = calloc(n_iterations, sizeof(*is_iteration));
	bool has_kind[PSD_TRACE_KINDS_MAX] = {false};
	unsigned n = 0;
	enum psd_status status = events && sums && values && is_iteration ? PSD_OK : psd_out_of_memory(err);

	for (unsigned e = 0; e < trace->n_events && !status; e++)
		if (is_counted(trace, &trace->events[e]))
			events[n++] = trace->events[e];
	if (!status && !n)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = trace->path},
				       "no event of a worker has the number of its iteration");
	if (!status)
		qsort(events, n, sizeof(*events), compare_events);
	for (unsigned e = 0, next; e < n && !status; e = next) {
		for (next = e + 1; next < n && events[next].kind == events[e].kind &&
				   events[next].iteration == events[e].iteration &&
				   events[next].process == events[e].process;)
			next++;
		has_kind[events[e].kind] = is_iteration[events[e].iteration] = true;
		sums[events[e].kind * n_iterations + (size_t)events[e].iteration] += covered_us(&events[e], next - e);
	}
	for (unsigned k = 0; k < trace->n_kinds && !status; k++) {
		unsigned n_values = 0;

		for (size_t i = (size_t)first_iteration(trace); i < n_iterations; i++)
			if (is_iteration[i])
				values[n_values++] = sums[k * n_iterations + i] / 1e6 / trace->n_workers;
		seconds[k] = has_kind[k] && n_values ? psd_words_median(values, n_values) : NAN;
	}
	free(events);
	free(sums);
	free(values);
	free(is_iteration);
	return status;
}

/* A value that went through nine digits. */
static double rounded(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", value);
	return isnan(value) ? value : strtod(text, NULL);
}

static unsigned find_kind(const struct psd_plot_trace *trace, const char *name)
{
	unsigned k = 0;

	while (k < trace->n_kinds && strcmp(trace->kinds[k], name) != 0)
		k++;
	return k;
}

static void add_kind(struct psd_comparison *comparison, const char *name, double predicted, double measured)
{
	struct psd_compared_kind *kind = &comparison->kinds[comparison->n_kinds];

	if (isnan(predicted) && isnan(measured))
		return;
	*kind = (struct psd_compared_kind){name, rounded(predicted), rounded(measured), NAN};
	/* A send of psd-run ends when the kernel has the message, one of psd-sim when the line has. */
	if (!isnan(predicted) && strcmp(name, "send") != 0 && kind->measured > 0)
		kind->error = kind->predicted / kind->measured - 1;
	comparison->n_kinds++;
}

static enum psd_status add_kinds(struct psd_comparison *comparison, const struct psd_plot_trace traces[2],
				 struct psd_error *err)
{
	double seconds[2][PSD_TRACE_KINDS_MAX];

	comparison->kinds =
		psd_arena_take(&comparison->figure->arena, 2 * PSD_TRACE_KINDS_MAX * sizeof(*comparison->kinds));
	if (!comparison->kinds)
		return psd_out_of_memory(err);
	for (unsigned side = 0; side < 2; side++)
		PSD_TRY(measure_kinds(&traces[side], seconds[side], err));
	for (unsigned k = 0; k < traces[0].n_kinds; k++) {
		const unsigned other = find_kind(&traces[1], traces[0].kinds[k]);

		add_kind(comparison, psd_figure_text(comparison->figure, "%s", traces[0].kinds[k]), seconds[0][k],
			 other < traces[1].n_kinds ? seconds[1][other] : NAN);
	}
	for (unsigned k = 0; k < traces[1].n_kinds; k++)
		if (find_kind(&traces[0], traces[1].kinds[k]) == traces[0].n_kinds)
			add_kind(comparison, psd_figure_text(comparison->figure, "%s", traces[1].kinds[k]), NAN,
				 seconds[1][k]);
	return PSD_OK;
}

/* ---- both traces ---- */

static enum psd_status check_traces(const struct psd_plot_trace traces[2], struct psd_error *err)
{
	const struct psd_plot_trace *p = &traces[0], *m = &traces[1];
	const struct {
		const char *name, *predicted, *measured;
	} members[] = {{"scenario", p->scenario, m->scenario},
		       {"system", p->system_name, m->system_name},
		       {"nodes", p->nodes, m->nodes},
		       {"workers", p->workers, m->workers},
		       {"bandwidth_bps", p->bandwidth_bps, m->bandwidth_bps}};

	if (!strncmp(p->executor, "real-", 5))
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = p->path},
				     "its executor is '%s', the first trace must be of psd-sim", p->executor);
	if (strncmp(m->executor, "real-", 5) != 0)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = m->path},
				     "its executor is '%s', the second trace must be of psd-run", m->executor);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (strcmp(members[i].predicted, members[i].measured) != 0)
			return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = m->path},
					     "its %s is '%s', must be '%s' as in %s", members[i].name,
					     members[i].measured, members[i].predicted, p->path);
	return PSD_OK;
}

/* Draws one iteration of a trace. span_ms: least width; *used_ms: the width that it has. */
static enum psd_status draw_timeline(struct psd_text *picture, const struct psd_plot_trace *trace,
				     const struct psd_plot_options *options, const struct psd_canvas *canvas,
				     double span_ms, double *used_ms, struct psd_error *err)
{
	const struct psd_timeline timeline = {options->workers, first_iteration(trace), span_ms};
	struct psd_figure *figure = malloc(sizeof(*figure));

	if (!figure)
		return psd_out_of_memory(err);
	psd_figure_init(figure);
	enum psd_status status = psd_timeline_fill(figure, trace, &timeline, used_ms, err);
	if (!status && picture)
		status = psd_figure_draw(picture, figure, canvas, NULL, err);
	psd_figure_release(figure);
	free(figure);
	return status;
}

static enum psd_status draw_timelines(const struct psd_plot_trace traces[2], const struct psd_plot_options *options,
				      const struct psd_canvas *canvas, struct psd_text *pictures[2],
				      struct psd_error *err)
{
	double spans_ms[2];

	for (unsigned side = 0; side < 2; side++)
		PSD_TRY(draw_timeline(NULL, &traces[side], options, canvas, 0, &spans_ms[side], err));
	for (unsigned side = 0; side < 2; side++)
		PSD_TRY(draw_timeline(pictures[side], &traces[side], options, canvas, fmax(spans_ms[0], spans_ms[1]),
				      &spans_ms[side], err));
	return PSD_OK;
}

enum psd_status psd_compared_read_traces(struct psd_comparison *comparison, const struct psd_plot_options *options,
					 const struct psd_canvas *canvas, struct psd_text *predicted,
					 struct psd_text *measured, struct psd_error *err)
{
	const char *const paths[2] = {options->predicted_trace, options->measured_trace};
	struct psd_text *pictures[2] = {predicted, measured};
	struct psd_plot_trace traces[2] = {{.path = NULL}};
	enum psd_status status = PSD_OK;
	double nodes;

	if (!paths[0])
		return PSD_OK;
	for (unsigned side = 0; side < 2 && !status; side++)
		status = psd_plot_trace_read(&traces[side], paths[side], err);
	if (!status)
		status = check_traces(traces, err);
	if (!status)
		status = add_kinds(comparison, traces, err);
	if (!status)
		status = draw_timelines(traces, options, canvas, pictures, err);
	if (!status) {
		nodes = psd_units_read_number(traces[0].nodes, &nodes) ? nodes : 0;
		comparison->traced = psd_figure_text(comparison->figure, "%s on %g %s", traces[0].system_name, nodes,
						     nodes == 1 ? "node" : "nodes");
	}
	for (unsigned side = 0; side < 2; side++)
		psd_plot_trace_release(&traces[side]);
	return status;
}
