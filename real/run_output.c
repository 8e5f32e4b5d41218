/* All speedups of a run have one baseline: psd-sim's, if the run has measured it. */
#include "real/run_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/encodings/encoding.h"
#include "engine/result/columns.h"
#include "real/replay/replay.h"

#define MOST_LEFT_OUT_RATIO 0.01 /* share of updates left out; a note tells of more */
#define MOST_OFF_RATIO	    0.1	 /* deviation from the profile's time; a note tells of more */

enum { SPLIT_INDENT = 10, SPLIT_WIDTH = 80 };

void psd_run_name_executor(char text[PSD_RUN_EXECUTOR_MAX], const struct psd_device_kind *device, bool has_replay,
			   enum psd_cluster_kind cluster_kind)
{
	snprintf(text, PSD_RUN_EXECUTOR_MAX, "real-%s%s%s", device ? device->name : "",
		 !has_replay ? ""
		 : device    ? "-replay"
			     : "replay",
		 cluster_kind == PSD_CLUSTER_SHAPED ? "-paced" : "");
}

static bool has_bandwidth(const struct psd_run_row *row)
{
	return row->cluster_kind != PSD_CLUSTER_LOOPBACK && row->point.bandwidth_bps > 0.0;
}

/* ---- the baseline of speedups ---- */

struct baseline {
	double images_per_sec;		 /* 0: not measured */
	const struct psd_system *system; /* the measured system; NULL: costs of a replay */
};

/* The scenario's baseline system, if this run had one worker. */
static struct baseline named_baseline(const struct psd_run_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;
	const struct psd_system *system = &scenario->systems[scenario->baseline_system];

	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++)
		if (row->system == system && row->point.workers == 1)
			return (struct baseline){psd_result_images_per_sec(&row->point,
									   psd_scenario_samples(scenario, system),
									   row->result.iteration_sec),
						 system};
	return (struct baseline){0.0, NULL};
}

/* One worker that only computes: the fastest system whose gradients all come from forward and backward. */
static struct baseline compute_baseline(const struct psd_run_report *report)
{
	const struct psd_point one = {.workers = 1};
	const uint32_t batch = report->costed->scenario->batch_per_worker;
	struct baseline quickest = {0.0, NULL};

	if (report->rows[0].has_replay)
		quickest.images_per_sec = psd_result_images_per_sec(&one, batch, report->costed->costs.compute_sec);
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++) {
		const double images_per_sec =
			psd_result_images_per_sec(&one, row->samples, row->result.own_compute_sec);

		if (!row->has_replay && !row->has_rebuilds && images_per_sec > quickest.images_per_sec)
			quickest = (struct baseline){images_per_sec, row->system};
	}
	return quickest;
}

static struct baseline baseline_of(const struct psd_run_report *report)
{
	return report->costed->scenario->baseline_system < 0 ? compute_baseline(report) : named_baseline(report);
}

void psd_run_output_add_no_speedup(struct psd_text *text, const struct psd_run_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	if (baseline_of(report).images_per_sec > 0.0)
		return;
	if (scenario->baseline_system < 0) {
		psd_text_add(text, "not known without a system that rebuilds no gradients from factors, such as one "
				   "with sync: ps");
		return;
	}
	psd_text_add(text, "not known: its baseline is one worker of ");
	psd_text_add_plain(text, scenario->systems[scenario->baseline_system].name);
	psd_text_add(text, ", which was not run");
}

static void add_speedup_head(struct psd_text *text, const struct psd_run_report *report)
{
	const struct baseline baseline = baseline_of(report);
	const bool is_named = report->costed->scenario->baseline_system >= 0;

	psd_text_add(text, "speedup   ");
	psd_run_output_add_no_speedup(text, report);
	if (baseline.images_per_sec > 0.0)
		psd_text_add(text, is_named ? "over one worker of " : "over one worker that only computes");
	if (baseline.system) {
		psd_text_add(text, is_named ? "" : ", as fast as with ");
		psd_text_add_plain(text, baseline.system->name);
	}
	psd_text_add(text, "\n");
}

/* ---- results ---- */

static struct psd_result result_of(const struct psd_run_report *report, const struct psd_run_row *row)
{
	const struct psd_result_basis basis = {.scenario = report->costed->scenario,
					       .executor = row->executor,
					       .tokens = psd_graph_tokens(&report->costed->graph)};
	const struct psd_outcome outcome = {
		.iteration_sec = row->result.iteration_sec,
		.parts = row->result.parts,
		.sent_bytes_per_node = row->result.sent_bytes_per_node,
		.received_bytes_per_node = row->result.received_bytes_per_node,
	};
	struct psd_result result =
		psd_result_make(&basis, row->system, row->point, &outcome, baseline_of(report).images_per_sec);

	result.bandwidth_bps.is_there = has_bandwidth(row);
	return result;
}

void psd_run_output_add_csv(struct psd_text *text, const struct psd_run_report *report)
{
	for (unsigned i = 0; i < report->n_rows; i++) {
		const struct psd_result result = result_of(report, &report->rows[i]);

		psd_columns_add_csv(text, &result);
	}
}

/* ---- the table ---- */

/* The result with the values that only a real run has. */
static struct psd_result full_result_of(const struct psd_run_report *report, const struct psd_run_row *row)
{
	const struct psd_worker_result *measured = &row->result;
	const double tested = (double)measured->test_labels;
	struct psd_result result = result_of(report, row);

	if (row->has_replay) {
		result.dilation_ratio = (struct psd_result_value){true, row->replay.dilation_ratio};
		result.busy_ratio = (struct psd_result_value){true, psd_replay_busy_ratio(measured)};
	} else {
		result.last_loss = (struct psd_result_value){true, measured->last_loss};
		result.accuracy_ratio =
			(struct psd_result_value){tested > 0.0, (double)measured->test_correct / tested};
	}
	return result;
}

static void add_replay_head(struct psd_text *text, const struct psd_replay *replay)
{
	if (replay->real_workers > 0)
		psd_text_add(text, "replay    beside %u worker%s that compute%s on zeros from the others: ",
			     replay->real_workers, psd_text_plural(replay->real_workers),
			     replay->real_workers == 1 ? "s" : "");
	else
		psd_text_add(text, "replay    ");
	psd_text_add(text, "operations last as long as predicted, messages are really sent");
	if (replay->payload_ratio < 1.0)
		psd_text_add(text, ", %.4g %% of their bytes", 100.0 * replay->payload_ratio);
	if (replay->real_workers == 0)
		psd_text_add(text, "; seconds and bytes are the cluster's, the replay took 'dilation' times as long");
	psd_text_add(text, "\n");
}

/* Systems with the same division share a line. */
static void add_splits(struct psd_text *text, const struct psd_run_report *report)
{
	for (unsigned i = 0; i < report->n_rows; i++) {
		const char *split = report->rows[i].split.bytes;
		bool is_new = split != NULL;

		for (unsigned j = 0; j < i && is_new; j++)
			is_new = !report->rows[j].split.bytes || strcmp(split, report->rows[j].split.bytes);
		if (!is_new)
			continue;
		psd_text_add(text, "groups    ");
		psd_text_add_wrapped(text, split, SPLIT_INDENT, SPLIT_INDENT, SPLIT_WIDTH);
	}
}

static void add_head(struct psd_text *text, const struct psd_run_report *report)
{
	static const char *const cluster_words[] = {
		[PSD_CLUSTER_LOOPBACK] = "processes on loopback, links as fast as this machine",
		[PSD_CLUSTER_SHAPED] = "processes on loopback that keep to the rate of the links",
		[PSD_CLUSTER_EMULATED] = "emulated on this machine",
		[PSD_CLUSTER_HOSTS] = "real hosts, links as they are",
	};
	const struct psd_graph *graph = &report->costed->graph;
	const struct psd_scenario *scenario = report->costed->scenario;
	const struct psd_point *point = &report->rows[0].point;
	char count[PSD_UNITS_TEXT_MAX], rate[PSD_UNITS_TEXT_MAX];
	unsigned n_async = 0;

	for (unsigned i = 0; i < report->n_rows; i++)
		n_async += report->rows[i].system->is_async;
	psd_text_add_plain(text, scenario->title);
	psd_text_add(text, "\n\nmodel     ");
	psd_text_add_plain(text, graph->name);
	psd_text_add(text, ": %s parameters in %u tensor%s", psd_units_write_count(graph->parameters, count),
		     graph->n_tensors, psd_text_plural(graph->n_tensors));
	if (scenario->n_groups == 0) /* else their batches follow */
		psd_text_add(text, "; batch %u per worker", scenario->batch_per_worker);
	psd_text_add(text, "\n");
	psd_text_add(text, "cluster   %u node%s", point->nodes, psd_text_plural(point->nodes));
	if (point->workers != point->nodes)
		psd_text_add(text, ", %u workers", point->workers);
	if (has_bandwidth(&report->rows[0]))
		psd_text_add(text, ", %s", psd_units_write_rate(point->bandwidth_bps, rate));
	if (scenario->n_slowdowns)
		psd_text_add(text, ", %u slowdown%s", scenario->n_slowdowns, psd_text_plural(scenario->n_slowdowns));
	psd_text_add(text, "; %s\n", cluster_words[report->rows[0].cluster_kind]);
	add_splits(text, report);
	psd_text_add(text, "executor  %s, %u iteration%s, %s counts%s\n", report->rows[0].executor,
		     report->n_iterations, psd_text_plural(report->n_iterations),
		     n_async == report->n_rows ? "each worker's median" : "the median",
		     n_async > 0 && n_async < report->n_rows ? ", each worker's where training is asynchronous" : "");
	add_speedup_head(text, report);
	if (report->rows[0].has_replay)
		add_replay_head(text, &report->rows[0].replay);
	psd_text_add(text, "\n");
}

/* Workers that replay take the profile's times, however long the computing workers take. */
static void add_profile_note(struct psd_text *text, const struct psd_run_report *report)
{
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++) {
		const double profile_sec = psd_system_micro_batches(row->system) * report->costed->costs.compute_sec;
		const double sec = row->result.own_compute_sec;

		if (row->replay.real_workers == 0 || fabs(sec / profile_sec - 1.0) <= MOST_OFF_RATIO)
			continue;
		psd_text_add(text, "note: '");
		psd_text_add_plain(text, row->system->name);
		psd_text_add(text,
			     "' computed for %.4g s an iteration, those that replay for %.4g s: psd-run calibrate "
			     "measures a profile of this machine\n",
			     sec, profile_sec);
	}
}

/* A few are normal: a dynamic loss scale leaves updates out until it has fallen. */
static void add_left_out_note(struct psd_text *text, const struct psd_run_report *report)
{
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++) {
		const struct psd_worker_result *result = &row->result;

		if ((double)result->n_left_out <= MOST_LEFT_OUT_RATIO * (double)result->n_updates)
			continue;
		psd_text_add(text, "note: '");
		psd_text_add_plain(text, row->system->name);
		psd_text_add(text,
			     "' left %" PRIu64 " of %" PRIu64 " updates out, whose gradients were beyond the range of "
			     "%s on their way%s\n",
			     result->n_left_out, result->n_updates, psd_encodings[row->system->wire]->name,
			     report->costed->scenario->train.loss_scale > 0.0
				     ? ": a smaller 'loss_scale' is needed, or 'dynamic'"
				     : "");
	}
}

/* A test takes whole batches of worker 0. */
static void add_untested_note(struct psd_text *text, const struct psd_run_report *report)
{
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++) {
		const uint64_t samples = row->result.untested_samples;

		if (samples == 0)
			continue;
		psd_text_add(text, "note: '");
		psd_text_add_plain(text, row->system->name);
		psd_text_add(text,
			     "' has no test accuracy: the test set has %" PRIu64
			     " sample%s, a test needs a batch of worker 0, %u samples\n",
			     samples, psd_text_plural(samples), row->samples / psd_system_micro_batches(row->system));
	}
}

/* Workers begin ahead of late updates. A prediction leaves these iterations out. */
static void add_early_note(struct psd_text *text, const struct psd_run_report *report)
{
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++) {
		if (row->result.n_needed == 0)
			continue;
		psd_text_add(text, "note: '");
		psd_text_add_plain(text, row->system->name);
		psd_text_add(text,
			     "' was measured over its first iterations, before updates are waited for: with "
			     "--iterations %" PRIu32 " or more they do not count\n",
			     row->result.n_needed);
	}
}

/* A prediction has whole periods, with one exchange in each. */
static void add_period_note(struct psd_text *text, const struct psd_run_report *report)
{
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++) {
		if (row->result.n_measured >= row->period)
			continue;
		psd_text_add(text, "note: '");
		psd_text_add_plain(text, row->system->name);
		psd_text_add(text,
			     "' was measured over %" PRIu32
			     " iteration%s, of which the last exchanges all values; over "
			     "whole %ss of %" PRIu32 " it sends less\n",
			     row->result.n_measured, psd_text_plural(row->result.n_measured),
			     psd_result_period_name(row->system), row->period);
	}
}

static void add_ages_note(struct psd_text *text, const struct psd_run_report *report)
{
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++) {
		const struct psd_gradient_ages *ages = &row->result.ages;
		const uint64_t bound = row->system->async.bound;

		if (ages->n_updates == 0)
			continue;
		psd_text_add(text, "note: '");
		psd_text_add_plain(text, row->system->name);
		psd_text_add(
			text,
			"' updated by gradients of parameters that lacked %.3g updates by other workers on average, "
			"%" PRIu32 " at most; a worker was %" PRIu32
			" iteration%s ahead of the slowest one at most, %s\n",
			(double)ages->sum / (double)ages->n_updates, ages->most, ages->most_ahead,
			psd_text_plural(ages->most_ahead), ages->most_ahead < bound ? "below its bound" : "its bound");
	}
}

enum psd_status psd_run_output_add_table(struct psd_text *text, const struct psd_run_report *report,
					 struct psd_error *err)
{
	struct psd_result *results = calloc(report->n_rows, sizeof(*results));

	if (!results)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a table");
	for (unsigned i = 0; i < report->n_rows; i++)
		results[i] = full_result_of(report, &report->rows[i]);
	add_head(text, report);
	psd_columns_add_table(text, results, report->n_rows, 1);
	for (unsigned i = 0; i < report->n_rows; i++)
		psd_result_add_lossy(text, report->rows[i].system, report->rows[i].point.workers,
				     report->rows[i].n_parts);
	for (unsigned i = 0; i < report->n_rows; i++)
		psd_result_add_assumed(text, report->rows[i].system);
	for (unsigned i = 0; i < report->n_rows; i++)
		psd_result_add_managed(text, report->rows[i].system, "'", &report->rows[i].result.early);
	for (unsigned i = 0; i < report->n_rows; i++)
		psd_result_add_reads(text, report->rows[i].system, "'", report->rows[i].result.reads);
	add_early_note(text, report);
	add_period_note(text, report);
	for (const struct psd_run_row *row = report->rows; row < report->rows + report->n_rows; row++)
		if (row->cluster_kind == PSD_CLUSTER_SHAPED || row->cluster_kind == PSD_CLUSTER_EMULATED)
			psd_result_add_budget(text, row->system,
					      psd_scenario_fastest_link_bps(report->costed->scenario, row->system,
									    row->point.bandwidth_bps),
					      report->costed->scenario->network.payload_ratio);
	add_ages_note(text, report);
	add_left_out_note(text, report);
	add_untested_note(text, report);
	add_profile_note(text, report);
	free(results);
	return PSD_OK;
}
