/* The table of results, one group of rows for each point, so that systems are compared where they compete. */
#include <string.h>

#include "engine/base/units.h"
#include "engine/result/result_table.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

/* ---- above the table: what was computed ---- */

static void write_model(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->matter->scenario;
	const struct psd_graph *graph = &report->matter->graph;
	const uint64_t wire_bytes = graph->parameters * (scenario->is_half ? 2 : 4);
	char count[PSD_UNITS_TEXT_MAX], bytes[PSD_UNITS_TEXT_MAX];

	fputs("model     ", out);
	psd_grid_write_text(out, graph->name);
	fprintf(out, ": %s parameters in %u tensors, gradients of %s (%s); batch %u per worker\n",
		psd_units_write_count(graph->parameters, count), graph->n_tensors,
		psd_units_write_bytes(wire_bytes, bytes), scenario->is_half ? "fp16" : "fp32",
		scenario->batch_per_worker);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void write_compute(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->matter->scenario;
	const struct psd_costs *costs = &report->matter->costs;
	static const char *const words[PSD_COSTS_SOURCES] = {
		[PSD_COSTS_MODEL] = "from a model of the device, not measured: ",
		[PSD_COSTS_SCALED] = "measured in part, the rest scaled: ",
		[PSD_COSTS_MEASURED] = "measured: ",
	};
	struct psd_sentence sentence = {.length = 0};
	char sec[PSD_UNITS_TEXT_MAX];

	psd_sentence_add(&sentence, "compute   %s a batch, %.4g images/s on one worker alone; ",
			 psd_units_write_seconds(costs->compute_sec, sec),
			 scenario->batch_per_worker / costs->compute_sec);
	psd_sentence_add(&sentence, words[costs->source]);
	psd_sentence_add(&sentence, "%s",
			 scenario->profile_path ? file_name(scenario->profile_path) : scenario->device_name);
	if (scenario->images_per_sec > 0.0)
		psd_sentence_add(&sentence, ", scaled to %.4g images/s", scenario->images_per_sec);
	if (scenario->jitter_ratio > 0.0)
		psd_sentence_add(&sentence, ", jitter %.3g %%", 100.0 * scenario->jitter_ratio);
	psd_sentence_write(out, &sentence, 10);
}

static void add_extent(struct psd_sentence *sentence, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->matter->scenario;
	unsigned fewest = psd_scenario_point(scenario, 0).nodes, most = fewest;

	for (unsigned p = 1; p < report->n_points; p++) {
		const unsigned nodes = psd_scenario_point(scenario, p).nodes;

		fewest = nodes < fewest ? nodes : fewest;
		most = nodes > most ? nodes : most;
	}
	if (fewest == most)
		psd_sentence_add(sentence, "%u node%s", most, most == 1 ? "" : "s");
	else
		psd_sentence_add(sentence, "%u to %u nodes", fewest, most);
	if (scenario->workers_per_node > 1)
		psd_sentence_add(sentence, " of %u workers", scenario->workers_per_node);
}

/* Swept rates have a column of their own. */
static void add_network(struct psd_sentence *sentence, const struct psd_scenario *scenario)
{
	const struct psd_network *network = &scenario->network;
	char rate[PSD_UNITS_TEXT_MAX], sec[PSD_UNITS_TEXT_MAX];

	if (!scenario->n_sweep_bandwidths && network->bandwidth_bps > 0.0)
		psd_sentence_add(sentence, ", %s", psd_units_write_rate(network->bandwidth_bps, rate));
	if (network->topology == PSD_TOPOLOGY_PLATFORM) {
		psd_sentence_add(sentence, ", SimGrid platform %s", file_name(network->platform_path));
		return;
	}
	psd_sentence_add(sentence, ", %s one way, ", psd_units_write_seconds(network->latency_sec, sec));
	if (network->topology == PSD_TOPOLOGY_STAR)
		psd_sentence_add(sentence, "one switch that never blocks");
	else
		psd_sentence_add(sentence, "%s of %u nodes, uplinks %.3g:1", psd_topology_names[network->topology],
				 network->nodes_per_rack, network->oversubscription_ratio);
}

static void write_cluster(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->matter->scenario;
	struct psd_sentence sentence = {.length = 0};

	psd_sentence_add(&sentence, "cluster   ");
	add_extent(&sentence, report);
	add_network(&sentence, scenario);
	if (scenario->n_slowdowns)
		psd_sentence_add(&sentence, ", %u slowdown%s", scenario->n_slowdowns,
				 scenario->n_slowdowns == 1 ? "" : "s");
	if (scenario->n_backgrounds)
		psd_sentence_add(&sentence, ", background traffic");
	psd_sentence_write(out, &sentence, 10);
}

static void write_executor(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->matter->scenario;

	if (report->is_estimate)
		fputs("executor  estimate, closed form", out);
	else
		fprintf(out, "executor  SimGrid, fidelity %s", psd_fidelity_names[scenario->fidelity]);
	fputs("; speedup over one worker ", out);
	if (scenario->baseline_system < 0) {
		fputs("that only computes\n", out);
		return;
	}
	fputs("of ", out);
	psd_grid_write_text(out, scenario->systems[scenario->baseline_system].name);
	fputc('\n', out);
}

/* ---- the table ---- */

/* Behind those of every result. */
enum column {
	COLUMN_PUBLISHED_THROUGHPUT = PSD_RESULT_COLUMNS,
	COLUMN_PUBLISHED_SPEEDUP,
	COLUMN_ERROR,
	COLUMN_BEYOND,
};

static void add_columns(struct psd_grid *grid)
{
	psd_result_table_add_columns(grid);
	psd_grid_add_column(grid, "published", "images/s", false);
	psd_grid_add_column(grid, "published", "speedup", false);
	psd_grid_add_column(grid, "error", "%  ", false);
	psd_grid_add_column(grid, "beyond", "calibration", true);
}

static struct psd_result_least find_least(const struct psd_report *report)
{
	struct psd_result_least least = {.sec = 0.0};

	for (unsigned i = 0; i < report->n_systems * report->n_points; i++) {
		const struct psd_result_row row = psd_output_row(report, &report->results[i]);

		psd_result_least_note(&least, &row);
	}
	return least;
}

static void set_published(struct psd_grid *grid, const struct psd_result *result, int throughput_decimals)
{
	const struct psd_published_row *published = result->published;

	if (!published)
		return;
	if (published->has_images_per_sec)
		psd_grid_set(grid, COLUMN_PUBLISHED_THROUGHPUT, "%.*f", throughput_decimals, published->images_per_sec);
	if (published->has_speedup)
		psd_grid_set(grid, COLUMN_PUBLISHED_SPEEDUP, "%.2f", published->speedup);
	if (result->has_error_ratio)
		psd_grid_set(grid, COLUMN_ERROR, "%+.1f %c", 100.0 * result->error_ratio,
			     published->is_fit ? 'c' : ' ');
}

/* In what a point lies beyond what the constants were fitted on. */
static void set_beyond(struct psd_grid *grid, const struct psd_calibrated *calibration, const struct psd_point *point)
{
	const bool has_more = calibration->workers && point->workers > calibration->workers;
	const bool is_other = calibration->workers && point->bandwidth_bps != calibration->bandwidth_bps;

	if (has_more || is_other)
		psd_grid_set(grid, COLUMN_BEYOND, "%s%s%s", has_more ? "workers" : "", has_more && is_other ? ", " : "",
			     is_other ? "link" : "");
}

static void add_result(struct psd_grid *grid, const struct psd_report *report, const struct psd_result *result,
		       const struct psd_result_least *least)
{
	const struct psd_scenario *scenario = report->matter->scenario;
	const struct psd_result_row row = psd_output_row(report, result);

	psd_result_table_add_row(grid, &row, least, scenario->workers_per_node > 1, scenario->n_sweep_bandwidths > 0);
	set_published(grid, result, psd_result_least_decimals(least));
	set_beyond(grid, &scenario->calibration, &result->point);
}

static bool has_fit(const struct psd_report *report)
{
	for (unsigned i = 0; i < report->n_systems * report->n_points; i++)
		if (report->results[i].has_error_ratio && report->results[i].published->is_fit)
			return true;
	return false;
}

static enum psd_status write_grid(FILE *out, const struct psd_report *report, struct psd_error *err)
{
	const struct psd_result_least least = find_least(report);
	struct psd_grid grid = {.n_rows = 0};
	enum psd_status status;

	add_columns(&grid);
	for (unsigned p = 0; p < report->n_points; p++) {
		if (report->n_systems > 1)
			psd_grid_add_gap(&grid);
		for (unsigned s = 0; s < report->n_systems; s++)
			add_result(&grid, report, &report->results[s * report->n_points + p], &least);
	}
	status = psd_grid_write(out, &grid, err);
	psd_grid_release(&grid);
	return status;
}

static void write_calibration(FILE *out, const struct psd_calibrated *calibration)
{
	char rate[PSD_UNITS_TEXT_MAX];

	if (calibration->workers)
		fprintf(out, "calibrated on up to %u worker%s at %s; what is beyond is extrapolated\n",
			calibration->workers, calibration->workers == 1 ? "" : "s",
			psd_units_write_rate(calibration->bandwidth_bps, rate));
}

enum psd_status psd_output_table(FILE *out, const struct psd_report *report, struct psd_error *err)
{
	enum psd_status status;

	psd_grid_write_text(out, report->matter->scenario->title);
	fputs("\n\n", out);
	write_model(out, report);
	write_compute(out, report);
	write_cluster(out, report);
	write_executor(out, report);
	fputc('\n', out);
	status = write_grid(out, report, err);
	if (status)
		return status;
	fputc('\n', out);
	if (has_fit(report))
		fputs("c: calibrated on this value; not a prediction\n", out);
	write_calibration(out, &report->matter->scenario->calibration);
	psd_output_notes(out, report);
	psd_output_bottlenecks(out, report);
	return PSD_OK;
}
