/* Speedup is relative to one worker's measured compute alone; a scenario that names a baseline system needs that
 * system's own run on one worker, so the field stays empty there. */
#include "real/run_output.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/result/result_table.h"
#include "real/session/replay.h"

const char *psd_run_executor(bool has_replay)
{
	return has_replay ? "real-replay" : "real-cpu";
}

/* ---- figures ---- */

static double images_per_sec(const struct psd_scenario *scenario, const struct psd_run_row *row)
{
	return (double)row->point.workers * scenario->batch_per_worker / row->result.iteration_sec;
}

static double speedup(const struct psd_run_row *row)
{
	return row->point.workers * row->result.parts.compute_sec / row->result.iteration_sec;
}

static struct psd_result_row row_of(const struct psd_scenario *scenario, const struct psd_run_row *row)
{
	return (struct psd_result_row){
		.scenario = scenario->title,
		.system = row->system->name,
		.executor = psd_run_executor(row->has_replay),
		.nodes = row->point.nodes,
		.workers = row->point.workers,
		.bandwidth_bps = {row->has_bandwidth, row->point.bandwidth_bps},
		.iteration_sec = row->result.iteration_sec,
		.images_per_sec = images_per_sec(scenario, row),
		.speedup = {scenario->baseline_system < 0, speedup(row)},
		.parts = row->result.parts,
		.sent_bytes_per_node = row->result.sent_bytes_per_node,
		.received_bytes_per_node = row->result.received_bytes_per_node,
	};
}

void psd_run_output_add_csv(struct psd_text *text, const struct psd_scenario *scenario, const struct psd_run_row *row)
{
	const struct psd_result_row result = row_of(scenario, row);

	psd_result_row_add(text, &result);
}

/* ---- the table ---- */

/* Behind those of every result: what only a real run has. */
enum column {
	COLUMN_LOSS = PSD_RESULT_COLUMNS,
	COLUMN_ACCURACY,
	COLUMN_DILATION = PSD_RESULT_COLUMNS, /* of replays, in place of the others */
	COLUMN_BUSY,
};

static void add_training(struct psd_grid *grid, const struct psd_worker_result *result)
{
	if (isfinite(result->last_loss))
		psd_grid_set(grid, COLUMN_LOSS, "%.4g", result->last_loss);
	else
		psd_grid_set(grid, COLUMN_LOSS, "diverged");
	if (result->test_samples > 0)
		psd_grid_set(grid, COLUMN_ACCURACY, "%.2f %%",
			     100.0 * (double)result->test_correct / (double)result->test_samples);
}

static void add_replay(struct psd_grid *grid, const struct psd_run_row *row)
{
	psd_grid_set(grid, COLUMN_DILATION, "%g", row->replay.dilation_ratio);
	psd_grid_set(grid, COLUMN_BUSY, "%.0f %%", 100.0 * psd_replay_busy_ratio(&row->result));
}

static void add_row(struct psd_grid *grid, const struct psd_scenario *scenario, const struct psd_run_row *row,
		    const struct psd_result_least *least)
{
	const struct psd_result_row common = row_of(scenario, row);

	psd_result_table_add_row(grid, &common, least, scenario->workers_per_node > 1, false);
	if (row->has_replay)
		add_replay(grid, row);
	else
		add_training(grid, &row->result);
}

static void add_rows(struct psd_grid *grid, const struct psd_run_report *report)
{
	const struct psd_scenario *scenario = report->matter->scenario;
	struct psd_result_least least = {.sec = 0.0};

	for (unsigned i = 0; i < report->n_rows; i++) {
		const struct psd_result_row row = row_of(scenario, &report->rows[i]);

		psd_result_least_note(&least, &row);
	}
	for (unsigned i = 0; i < report->n_rows; i++)
		add_row(grid, scenario, &report->rows[i], &least);
}

static void add_replay_head(struct psd_text *text, const struct psd_replay *replay)
{
	psd_text_add(text, "replay    operations last as long as predicted, messages are really sent");
	if (replay->payload_ratio < 1.0)
		psd_text_add(text, ", %.4g %% of their bytes", 100.0 * replay->payload_ratio);
	psd_text_add(text, "; seconds and bytes are the cluster's, a second took as many as 'dilation' says\n");
}

static void add_head(struct psd_text *text, const struct psd_run_report *report)
{
	static const char *const ground_words[] = {
		[PSD_GROUND_LOOPBACK] = "processes on loopback, as fast as this machine",
		[PSD_GROUND_SHAPED] = "processes on loopback that keep to the rate of the links",
		[PSD_GROUND_EMULATED] = "emulated on this machine",
		[PSD_GROUND_HOSTS] = "real hosts, links as they are",
	};
	const struct psd_graph *graph = &report->matter->graph;
	const struct psd_point *point = &report->rows[0].point;
	char count[PSD_UNITS_TEXT_MAX], rate[PSD_UNITS_TEXT_MAX];

	psd_text_add_plain(text, report->matter->scenario->title);
	psd_text_add(text, "\n\nmodel     ");
	psd_text_add_plain(text, graph->name);
	psd_text_add(text, ": %s parameters in %u tensors; batch %u per worker\n",
		     psd_units_write_count(graph->parameters, count), graph->n_tensors,
		     report->matter->scenario->batch_per_worker);
	psd_text_add(text, "cluster   %u node%s", point->nodes, point->nodes == 1 ? "" : "s");
	if (point->workers != point->nodes)
		psd_text_add(text, ", %u workers", point->workers);
	if (report->rows[0].has_bandwidth)
		psd_text_add(text, ", %s", psd_units_write_rate(point->bandwidth_bps, rate));
	psd_text_add(text, "; %s\n", ground_words[report->ground]);
	psd_text_add(text,
		     "executor  %s, %u iteration%s, the median counts; speedup over one worker that only computes\n",
		     psd_run_executor(report->rows[0].has_replay), report->n_iterations,
		     report->n_iterations == 1 ? "" : "s");
	if (report->rows[0].has_replay)
		add_replay_head(text, &report->rows[0].replay);
	psd_text_add(text, "\n");
}

void psd_run_output_add_table(struct psd_text *text, const struct psd_run_report *report)
{
	struct psd_grid grid = {.n_rows = 0};

	add_head(text, report);
	psd_result_table_add_columns(&grid);
	psd_grid_add_column(&grid, report->rows[0].has_replay ? "" : "last",
			    report->rows[0].has_replay ? "dilation" : "loss", false);
	psd_grid_add_column(&grid, report->rows[0].has_replay ? "machine" : "test",
			    report->rows[0].has_replay ? "busy" : "accuracy", false);
	add_rows(&grid, report);
	psd_grid_add(text, &grid);
	psd_grid_release(&grid);
}
