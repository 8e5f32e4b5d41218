#include "plots/steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/base/sort.h"
#include "engine/base/units.h"
#include "plots/trace.h"
#include "plots/words.h"
#include "sim/import/trace.h"

/* Columns of the rows that traces become. */
enum { SCENARIO, SYSTEM, EXECUTOR, WORKERS, BANDWIDTH, ITERATION_SEC, SPEEDUP, COLUMNS };
static const char *const columns[COLUMNS] = {"scenario",      "system",	       "executor", "workers",
					     "bandwidth_bps", "iteration_sec", "speedup"};
static const char step_name[] = "ProfilerStep#";

enum { NUMBER_ROOM = 32 };

struct traced {
	const char *path;
	const char *scenario, *system_name, *executor, *bandwidth_bps;
	double workers;
	double step_sec;
	bool is_repeat; /* another trace has the same system and workers */
};

bool psd_steps_are_traces(const char *const paths[], unsigned n_paths)
{
	static const char *const ends[] = {".json", ".json.gz", ".gz", ".sqlite"};
	const size_t length = n_paths ? strlen(paths[0]) : 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (length > strlen(ends[i]) && !strcmp(paths[0] + length - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

/* ---- durations of steps ---- */

/* The median distance of n begins, without the first of several: a pipeline fills then. last_end: end of the last
 * step. */
static double step_of(double *begins, unsigned n, double last_end)
{
	const unsigned first = n > 2;

	psd_sort_doubles(begins, n);
	if (n == 1)
		return last_end - begins[0];
	for (unsigned i = first; i + 1 < n; i++)
		begins[i - first] = begins[i + 1] - begins[i];
	return psd_words_median(begins, n - 1 - first);
}

static enum psd_status read_psd_trace(struct psd_results *results, struct traced *traced, struct psd_error *err)
{
	struct psd_arena *arena = &results->arena;
	struct psd_plot_trace trace;
	double *begins = NULL, end = -INFINITY;
	enum psd_status status = psd_plot_trace_read(&trace, traced->path, err);
	unsigned n = 0;

	if (!status) {
		begins = malloc(((size_t)trace.last_iteration + 1) * sizeof(*begins));
		status = begins ? PSD_OK : psd_out_of_memory(err);
	}
	for (int64_t i = 0; !status && i <= trace.last_iteration; i++)
		begins[i] = INFINITY;
	for (unsigned e = 0; !status && e < trace.n_events; e++) {
		const struct psd_plot_event *event = &trace.events[e];

		if (event->iteration < 0 || event->process >= trace.n_processes ||
		    trace.processes[event->process].worker < 0)
			continue;
		begins[event->iteration] = fmin(begins[event->iteration], event->begin_us);
		end = fmax(end, event->begin_us + event->length_us);
	}
	for (int64_t i = 0; !status && i <= trace.last_iteration; i++)
		if (begins[i] < INFINITY)
			begins[n++] = begins[i];
	if (!status && !n)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = traced->path},
				       "no event of a worker has the number of its iteration");
	if (!status) {
		traced->step_sec = step_of(begins, n, end) / 1e6;
		traced->scenario = psd_arena_copy(arena, trace.scenario, strlen(trace.scenario));
		traced->system_name = psd_arena_copy(arena, trace.system_name, strlen(trace.system_name));
		traced->executor = psd_arena_copy(arena, trace.executor, strlen(trace.executor));
		traced->bandwidth_bps = psd_arena_copy(arena, trace.bandwidth_bps, strlen(trace.bandwidth_bps));
		traced->workers = strtod(*trace.workers ? trace.workers : "0", NULL);
	}
	free(begins);
	psd_plot_trace_release(&trace);
	return status;
}

/* A trace of PyTorch's profiler; psd's traces of one worker have the same form, and their system in otherData. */
static enum psd_status read_profile(struct psd_results *results, struct traced *traced, const char *head,
				    struct psd_error *err)
{
	struct psd_arena *arena = &results->arena;
	const char *other = strstr(head, "\"otherData\":{");
	struct psd_trace trace;
	enum psd_status status = psd_trace_read(&trace, traced->path, err);
	double *begins, end = -INFINITY;
	unsigned n = 0;

	if (status)
		return status;
	begins = malloc(((size_t)trace.n_ops + 1) * sizeof(*begins));
	for (unsigned i = 0; begins && i < trace.n_ops; i++)
		if (!strncmp(psd_trace_string(&trace, trace.ops[i].name), step_name, strlen(step_name))) {
			begins[n++] = trace.ops[i].start_us;
			end = fmax(end, trace.ops[i].start_us + trace.ops[i].dur_us);
		}
	if (!begins)
		status = psd_out_of_memory(err);
	else if (!n)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = traced->path},
				       "has no range '%sN': the profiler records steps if the program calls its step()",
				       step_name);
	if (!status) {
		traced->step_sec = step_of(begins, n, end) / 1e6;
		traced->workers = trace.n_ranks ? trace.n_ranks : 1;
		traced->scenario = other ? psd_plot_json_text(arena, other, "scenario") : "Speedup";
		traced->system_name = other ? psd_plot_json_text(arena, other, "system") : "profiled";
		traced->executor = other ? psd_plot_json_text(arena, other, "executor") : "profiler";
		traced->bandwidth_bps = other ? psd_plot_json_number(arena, other, "bandwidth_bps") : "";
	}
	free(begins);
	psd_trace_release(&trace);
	return status;
}

static enum psd_status read_trace(struct psd_results *results, struct traced *traced, const char *path,
				  struct psd_error *err)
{
	const char *head;
	bool is_ours;

	PSD_TRY(psd_plot_trace_peek(&results->arena, path, &is_ours, &head, err));
	traced->path = path;
	PSD_TRY(is_ours ? read_psd_trace(results, traced, err) : read_profile(results, traced, head, err));
	if (!(traced->step_sec > 0 && traced->workers >= 1))
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "has steps of %g s on %g workers, must be more than 0 s on 1 worker or more",
				     traced->step_sec, traced->workers);
	if (!traced->scenario || !traced->system_name || !traced->executor || !traced->bandwidth_bps)
		return psd_out_of_memory(err);
	return PSD_OK;
}

/* ---- rows ---- */

static bool is_same_point(const struct traced *one, const struct traced *other)
{
	return one->workers == other->workers && !strcmp(one->system_name, other->system_name) &&
	       !strcmp(one->executor, other->executor) && !strcmp(one->scenario, other->scenario) &&
	       !strcmp(one->bandwidth_bps, other->bandwidth_bps);
}

/* Traces of several ranks, or runs, of one point become one step: their median. */
static void join_repeats(struct traced *traced, unsigned n, double *steps)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned n_steps = 0;

		for (unsigned k = i; k < n && !traced[i].is_repeat; k++)
			if (is_same_point(&traced[i], &traced[k])) {
				traced[k].is_repeat = k > i;
				steps[n_steps++] = traced[k].step_sec;
			}
		if (n_steps)
			traced[i].step_sec = psd_words_median(steps, n_steps);
	}
}

/* The trace whose step is that of one worker: one of one worker, else of fewest of the same system. */
static const struct traced *find_base(const struct traced *traced, unsigned n, const struct traced *of)
{
	const struct traced *base = of;

	for (unsigned i = 0; i < n; i++) {
		const bool is_same = !strcmp(traced[i].system_name, of->system_name);

		if (traced[i].is_repeat || (!is_same && traced[i].workers > 1))
			continue;
		if (traced[i].workers < base->workers ||
		    (traced[i].workers == base->workers && traced[i].step_sec < base->step_sec))
			base = &traced[i];
	}
	return base;
}

static enum psd_status add_row(struct psd_results *results, struct psd_table *table, const struct traced *traced,
			       const struct traced *base, struct psd_error *err)
{
	const double numbers[COLUMNS] = {[WORKERS] = traced->workers,
					 [ITERATION_SEC] = traced->step_sec,
					 [SPEEDUP] = traced->workers * base->step_sec / traced->step_sec};
	const char **fields = psd_arena_take(&results->arena, COLUMNS * sizeof(*fields));
	void *grown = psd_grown(results->rows, results->n_rows, &results->rows_room, sizeof(*results->rows));

	if (grown)
		results->rows = grown;
	if (!fields || !grown)
		return psd_out_of_memory(err);
	fields[SCENARIO] = traced->scenario;
	fields[SYSTEM] = traced->system_name;
	fields[EXECUTOR] = traced->executor;
	fields[BANDWIDTH] = traced->bandwidth_bps;
	for (unsigned c = 0; c < COLUMNS; c++)
		if (numbers[c] > 0) {
			char *text = psd_arena_take(&results->arena, NUMBER_ROOM);

			if (!text)
				return psd_out_of_memory(err);
			snprintf(text, NUMBER_ROOM, "%.9g", numbers[c]);
			fields[c] = text;
		}
	table->n_rows++;
	results->rows[results->n_rows++] = (struct psd_row){table, fields, 0};
	return PSD_OK;
}

enum psd_status psd_steps_read(struct psd_results *results, const char *const paths[], unsigned n_paths,
			       const char *const where[], struct psd_error *err)
{
	struct traced *traced;
	double *steps;
	bool has_several = false;
	enum psd_status status = PSD_OK;

	*results = (struct psd_results){.n_tables = 1};
	results->tables = psd_arena_take(&results->arena, sizeof(*results->tables));
	traced = psd_arena_take(&results->arena, n_paths * sizeof(*traced));
	steps = psd_arena_take(&results->arena, n_paths * sizeof(*steps));
	if (!results->tables || !traced || !steps)
		return psd_out_of_memory(err);
	results->tables[0] = (struct psd_table){paths[0], columns, COLUMNS, 0};
	for (unsigned i = 0; i < n_paths && !status; i++)
		status = read_trace(results, &traced[i], paths[i], err);
	if (!status)
		join_repeats(traced, n_paths, steps);
	for (unsigned i = 0; i < n_paths && !status; i++)
		if (!traced[i].is_repeat)
			status = add_row(results, &results->tables[0], &traced[i],
					 find_base(traced, n_paths, &traced[i]), err);
	for (unsigned i = 0; i < n_paths && !status; i++)
		has_several = has_several || traced[i].workers != traced[0].workers;
	if (!status && !has_several)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = paths[0]},
				       "traces of %g worker%s alone, must be of several numbers of workers",
				       traced[0].workers, psd_text_plural((uint64_t)traced[0].workers));
	return status ? status : psd_results_keep(results, where, err);
}
