/* The table and the files of a calibration. */
#define _GNU_SOURCE
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "engine/base/file.h"
#include "engine/base/grid.h"
#include "engine/base/output.h"
#include "engine/base/units.h"
#include "engine/result/columns.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"
#include "real/base/machine.h"
#include "real/calibrate/calibrate_parts.h"

enum { MOST_PATHS = 16 }; /* paths in a scenario */

#define UNKNOWN_FLOPS 1e9 /* written, but not used, if nothing can be rebuilt */

enum unit { UNIT_SECONDS, UNIT_RATE, UNIT_FLOP_RATE, UNIT_RATIO };

static const struct {
	const char *words;
	enum unit unit;
} quantities[PSD_QUANTITIES] = {
	[PSD_QUANTITY_LAYERS_SEC] = {"layers of the slowest", UNIT_SECONDS},
	[PSD_QUANTITY_JITTER_RATIO] = {"compute.jitter", UNIT_RATIO},
	[PSD_QUANTITY_REBUILD] = {"rebuild from factors", UNIT_FLOP_RATE},
	[PSD_QUANTITY_BESIDE_SEC] = {"host.iteration", UNIT_SECONDS},
	[PSD_QUANTITY_REDUCE_BPS] = {"host.reduce", UNIT_RATE},
	[PSD_QUANTITY_UPDATE_BPS] = {"host.update", UNIT_RATE},
	[PSD_QUANTITY_COPY_BPS] = {"host.copy", UNIT_RATE},
	[PSD_QUANTITY_TRANSPORT_BPS] = {"host.transport", UNIT_RATE},
	[PSD_QUANTITY_PAYLOAD_RATIO] = {"network.payload", UNIT_RATIO},
	[PSD_QUANTITY_LATENCY_SEC] = {"host.latency", UNIT_SECONDS},
	[PSD_QUANTITY_INCAST_RATIO] = {"host.incast", UNIT_RATIO},
	[PSD_QUANTITY_LOCAL_BPS] = {"local.bandwidth", UNIT_RATE},
	[PSD_QUANTITY_LOCAL_LATENCY_SEC] = {"local.latency", UNIT_SECONDS},
	[PSD_QUANTITY_MESSAGE_SEC] = {"machine.message", UNIT_SECONDS},
	[PSD_QUANTITY_BYTES_BPS] = {"machine.bytes", UNIT_RATE},
};

/* ---- the table ---- */

static const char *write_value(double value, enum unit unit, char text[PSD_UNITS_TEXT_MAX])
{
	size_t length;

	switch (unit) {
	case UNIT_SECONDS: return psd_units_write_seconds(value, text);
	case UNIT_RATE: return psd_units_write_rate(value, text);
	case UNIT_FLOP_RATE:
	case UNIT_RATIO:
		length = strlen(psd_units_write_number(value * (unit == UNIT_RATIO ? 100.0 : 1e-9), text));
		snprintf(text + length, PSD_UNITS_TEXT_MAX - length, unit == UNIT_RATIO ? " %%" : " GFLOPS");
		return text;
	}
	return text;
}

/* The value for the table and the scenario. A message's constant contains the links' latency, which the scenario has
 * already, and the receiver's processor time, which machine.message has. The sender's time overlaps with it in a
 * prediction. The rest is the latency of the host, or of the memory inside a node. */
static double final_value(const struct psd_calibration *calibration, unsigned quantity)
{
	const struct psd_measured *measured = calibration->measured;
	const bool is_of_link = quantity == PSD_QUANTITY_LATENCY_SEC;
	const double links_sec = is_of_link ? calibration->options->costed->scenario->network.latency_sec : 0.0;

	if (!is_of_link && quantity != PSD_QUANTITY_LOCAL_LATENCY_SEC)
		return measured[quantity].value;
	return fmax(0.0, measured[quantity].value - links_sec - measured[PSD_QUANTITY_MESSAGE_SEC].value);
}

/* The jitter is noisy if the seconds of layers are. */
static bool is_noisy(const struct psd_calibration *calibration, unsigned quantity)
{
	const unsigned judged = quantity == PSD_QUANTITY_JITTER_RATIO ? PSD_QUANTITY_LAYERS_SEC : quantity;

	return psd_calibrate_spread_ratio(&calibration->measured[judged]) > PSD_CALIBRATE_NOISY_RATIO;
}

double psd_calibrate_worst_spread_ratio(const struct psd_calibration *calibration)
{
	double worst_ratio = 0.0;

	for (unsigned q = 0; q < PSD_QUANTITIES; q++)
		if (calibration->measured[q].is_there && q != PSD_QUANTITY_JITTER_RATIO)
			worst_ratio = fmax(worst_ratio, psd_calibrate_spread_ratio(&calibration->measured[q]));
	return worst_ratio;
}

static void add_row(struct psd_grid *grid, const struct psd_calibration *calibration, unsigned quantity)
{
	const struct psd_measured *measured = &calibration->measured[quantity];
	char value[PSD_UNITS_TEXT_MAX];

	psd_grid_add_row(grid);
	psd_grid_set(grid, 0, "%s", quantities[quantity].words);
	psd_grid_set(grid, 1, "%s", write_value(final_value(calibration, quantity), quantities[quantity].unit, value));
	if (quantity != PSD_QUANTITY_JITTER_RATIO) /* a spread itself */
		psd_grid_set(grid, 2, "%.1f %%", 100.0 * psd_calibrate_spread_ratio(measured));
	if (measured->residual_ratio > 0.0)
		psd_grid_set(grid, 3, "%.1f %%", 100.0 * measured->residual_ratio);
	psd_grid_set(grid, 4, "%u", measured->n_samples);
	psd_grid_set(grid, 5, "%s", measured->range);
	if (is_noisy(calibration, quantity))
		psd_grid_set(grid, 6, "noisy");
}

void psd_calibrate_add_table(struct psd_text *text, const struct psd_calibration *calibration)
{
	static const char *const heads[] = {"quantity", "value", "spread", "residual", "samples", "measured with", ""};
	static const unsigned worth[] = {0, 0, 4, 3, 2, 1, 5};
	struct psd_grid grid = {.n_rows = 0};
	bool has_noise = false;

	for (unsigned c = 0; c < sizeof(heads) / sizeof(heads[0]); c++)
		grid.worth[psd_grid_add_column(&grid, "", heads[c], c == 0 || c >= 5)] = worth[c];
	for (unsigned q = 0; q < PSD_QUANTITIES; q++)
		if (calibration->measured[q].is_there) {
			add_row(&grid, calibration, q);
			has_noise = has_noise || is_noisy(calibration, q);
		}
	psd_grid_add(text, &grid);
	psd_grid_release(&grid);
	if (has_noise)
		psd_text_add(text,
			     "\nnoisy: measurements lie more than %.0f %% apart, so predictions may be off by as much. "
			     "Calibrate again while nothing\nelse runs here, or with more --attempts.\n",
			     100.0 * PSD_CALIBRATE_NOISY_RATIO);
}

/* ---- paths ---- */

/* NAME.yaml, NAME-profile.csv, NAME-points.csv */
static void add_path(struct psd_text *path, const struct psd_calibration *calibration, enum psd_calibrate_file file)
{
	static const char *const endings[PSD_CALIBRATE_FILES] = {
		[PSD_CALIBRATE_PROFILE] = "-profile.csv", [PSD_CALIBRATE_POINTS] = "-points.csv"};
	const char *output_path = calibration->options->output_path;
	const size_t length = strlen(output_path), tail = strlen(".yaml");
	const bool has_tail = length > tail && !strcmp(output_path + length - tail, ".yaml");

	psd_text_add_bytes(path, output_path, endings[file] && has_tail ? length - tail : length);
	psd_text_add(path, "%s", endings[file] ? endings[file] : "");
}

struct paths {
	char *resolved[MOST_PATHS];
	unsigned n;
};

/* Makes a path absolute, so that the new scenario may be in any folder. A path that cannot be resolved stays, and fails
 * when it is read. */
static bool make_absolute(const struct psd_schema_spot *spot)
{
	const char **path = (const char **)((uintptr_t)spot->base + spot->key->offset);
	struct paths *paths = spot->context;
	char *resolved = spot->key->type == PSD_KEY_PATH && *path ? realpath(*path, NULL) : NULL;

	if (resolved) {
		assert(paths->n < MOST_PATHS);
		*path = paths->resolved[paths->n++] = resolved;
	}
	return true;
}

/* ---- heads ---- */

static void add_processor(struct psd_text *text)
{
	char model[PSD_MACHINE_MODEL_MAX];

	psd_machine_model(model);
	psd_text_add_plain(text, model);
}

/* Comment lines with date, machine and versions. */
static void add_origin(struct psd_text *text, const struct psd_calibration *calibration)
{
	const time_t now = time(NULL);
	struct utsname system = {.release = "unknown"};
	struct tm utc;
	char date[32] = "";

	(void)uname(&system);
	if (gmtime_r(&now, &utc))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &utc);
	psd_text_add(text, "# origin: psd-run calibrate %s, %s UTC\n# machine: ", calibration->options->version, date);
	add_processor(text);
	psd_text_add(text, ", %u cores; Linux %s; ", calibration->cores, system.release);
	psd_text_add_plain(text, calibration->device_text);
	psd_text_add(text, "\n");
}

static void add_fits(struct psd_text *text, const struct psd_calibration *calibration)
{
	char value[PSD_UNITS_TEXT_MAX];

	for (unsigned q = 0; q < PSD_QUANTITIES; q++) {
		const struct psd_measured *measured = &calibration->measured[q];

		if (!measured->is_there)
			continue;
		psd_text_add(text, "# %s: %s", quantities[q].words,
			     write_value(final_value(calibration, q), quantities[q].unit, value));
		if (q != PSD_QUANTITY_JITTER_RATIO)
			psd_text_add(text, ", spread %.1f %%", 100.0 * psd_calibrate_spread_ratio(measured));
		if (measured->residual_ratio > 0.0)
			psd_text_add(text, ", residual %.1f %%", 100.0 * measured->residual_ratio);
		psd_text_add(text, ", %u samples, %s%s\n", measured->n_samples, measured->range,
			     is_noisy(calibration, q) ? "; noisy" : "");
	}
}

/* ---- the profile ---- */

static void add_profile(struct psd_text *text, const struct psd_calibration *calibration)
{
	const struct psd_graph *graph = &calibration->options->costed->graph;
	const struct psd_scenario *scenario = calibration->options->costed->scenario;
	const struct psd_measured *rebuild = &calibration->measured[PSD_QUANTITY_REBUILD];

	add_origin(text, calibration);
	psd_text_add(
		text,
		"# batch: %u\n# kind: measured\n# device: %s, %u at a time, %s\n# gemm_flops_per_sec: %.4fGFLOPS\n",
		scenario->batch_per_worker, calibration->options->device->name, calibration->n_busy,
		psd_layer_arithmetic_names[scenario->train.arithmetic],
		1e-9 * (rebuild->is_there ? rebuild->value : UNKNOWN_FLOPS));
	psd_text_add(text, "layer,forward_sec,backward_sec\n");
	for (unsigned l = 0; l < graph->n_layers; l++)
		if (graph->layers[l].n_inputs > 0) {
			psd_text_add_csv(text, graph->layers[l].name);
			psd_text_add(text, ",%.9f,%.9f\n", calibration->forward_sec[l], calibration->backward_sec[l]);
		}
}

/* ---- the points ---- */

/* The executor is "real-idle", since the exchange computes nothing. */
static void add_points(struct psd_text *text, const struct psd_calibration *calibration)
{
	const struct psd_calibrate_point *point = &calibration->point;
	const struct psd_result result = {
		.scenario = calibration->options->costed->scenario->title,
		.system_name = "PS",
		.executor = "real-idle",
		.point = {.nodes = point->workers, .workers = point->workers},
		.bandwidth_bps = {point->bandwidth_bps > 0.0, point->bandwidth_bps},
		.outcome = {.iteration_sec = point->iteration_sec,
			    .parts.exposed_comm_sec = point->iteration_sec,
			    .sent_bytes_per_node = point->node_bytes,
			    .received_bytes_per_node = point->node_bytes},
	};

	psd_columns_add_csv_head(text, NULL);
	if (point->workers)
		psd_columns_add_csv(text, &result);
}

/* ---- the scenario ---- */

/* Rounds to four digits, which are more than the spread allows and keep printed rates short. */
static double rounded(double value)
{
	const double step = value > 0.0 ? pow(10.0, floor(log10(value)) - 3.0) : 1.0;

	return step >= 1.0 ? round(value / step) * step : round(value / step) / round(1.0 / step);
}

static double value_of(const struct psd_calibration *calibration, enum psd_quantity quantity)
{
	return rounded(calibration->measured[quantity].value);
}

/* Rounds by printing and reading, so that no tail of digits remains. */
static double seconds_of(const struct psd_calibration *calibration, enum psd_quantity quantity)
{
	double sec = final_value(calibration, quantity);
	char text[PSD_UNITS_TEXT_MAX];

	snprintf(text, sizeof(text), "%.4gus", 1e6 * sec);
	(void)psd_units_read_seconds(text, &sec); /* text that is too long leaves sec as it is */
	return sec;
}

/* Replaces all of `host`. The key `collective` is of another stack, and dropped. */
static void fit_host(struct psd_host_costs *host, const struct psd_calibration *calibration)
{
	*host = (struct psd_host_costs){
		.reduce_bps = value_of(calibration, PSD_QUANTITY_REDUCE_BPS),
		.update_bps = value_of(calibration, PSD_QUANTITY_UPDATE_BPS),
		.copy_bps = value_of(calibration, PSD_QUANTITY_COPY_BPS),
		.transport_bps = value_of(calibration, PSD_QUANTITY_TRANSPORT_BPS),
		.incast_ratio = value_of(calibration, PSD_QUANTITY_INCAST_RATIO),
		.latency_sec = seconds_of(calibration, PSD_QUANTITY_LATENCY_SEC),
		.iteration_sec = seconds_of(calibration, PSD_QUANTITY_BESIDE_SEC),
		.share_ratio = 1,
		.requests = 1,
	};
}

/* Messages between workers of a node pass through memory and no switch. */
static void fit_local(struct psd_network *network, const struct psd_calibration *calibration)
{
	if (!calibration->measured[PSD_QUANTITY_LOCAL_BPS].is_there)
		return;
	network->local_bps = value_of(calibration, PSD_QUANTITY_LOCAL_BPS);
	network->local_latency_sec = seconds_of(calibration, PSD_QUANTITY_LOCAL_LATENCY_SEC);
	network->local_switches = 0;
	network->between_bps = 0.0;
}

/* Without links, a payload ratio of an earlier calibration with links is dropped. */
static void fit(struct psd_scenario *scenario, const struct psd_calibration *calibration)
{
	const struct psd_measured *payload = &calibration->measured[PSD_QUANTITY_PAYLOAD_RATIO];

	scenario->device_name = NULL;
	scenario->samples_per_sec = 0.0;
	for (unsigned g = 0; g < scenario->n_groups; g++) { /* this machine emulates all of them */
		struct psd_node_group *group = &scenario->groups[g];

		group->own = (struct psd_workload){.batch_per_worker = group->own.batch_per_worker};
		group->host = (struct psd_host_costs){.n_collective_classes = 0};
	}
	scenario->jitter_ratio = fmin(value_of(calibration, PSD_QUANTITY_JITTER_RATIO), 1.0);
	scenario->machine.cores = calibration->cores;
	scenario->machine.nodes = 0;
	scenario->machine.bytes_bps = value_of(calibration, PSD_QUANTITY_BYTES_BPS);
	scenario->machine.message_sec = seconds_of(calibration, PSD_QUANTITY_MESSAGE_SEC);
	scenario->calibration = (struct psd_calibrated){
		.workers = calibration->link_bps > 0.0 ? calibration->point.workers : 0,
		.bandwidth_bps = calibration->link_bps,
		.spread_ratio = fmin(round(100.0 * psd_calibrate_worst_spread_ratio(calibration)) / 100.0,
				     PSD_MOST_SPREAD_RATIO),
	};
	scenario->network.payload_ratio = payload->is_there ? rounded(payload->value) : 1.0;
	fit_local(&scenario->network, calibration);
	fit_host(&scenario->host, calibration);
	for (unsigned s = 0; s < scenario->n_systems; s++)
		fit_host(&scenario->systems[s].host, calibration);
}

static void add_used_points(struct psd_text *text, const struct psd_calibration *calibration)
{
	char rate[PSD_UNITS_TEXT_MAX];

	psd_text_add(text,
		     "# fitted to: exchanges between 1 to 3 workers and a server, and PS on %u nodes without compute",
		     calibration->point.workers);
	if (calibration->link_bps > 0.0)
		psd_text_add(text, ", at %s", psd_units_write_rate(calibration->link_bps, rate));
	if (calibration->point.bandwidth_bps > 0.0)
		psd_text_add(text, " and %s", psd_units_write_rate(calibration->point.bandwidth_bps, rate));
	if (calibration->measured[PSD_QUANTITY_LOCAL_BPS].is_there)
		psd_text_add(text, ", and between two workers of a node");
	psd_text_add(text, "; no training was\n");
}

static void add_scenario(struct psd_text *text, const struct psd_calibration *calibration)
{
	struct psd_scenario *scenario = malloc(sizeof(*scenario)); /* large; its strings are borrowed */
	struct psd_text profile_path = {.bytes = NULL};
	struct paths paths = {.n = 0};

	add_path(&profile_path, calibration, PSD_CALIBRATE_PROFILE);
	text->is_out_of_memory = !scenario || profile_path.is_out_of_memory;
	if (!text->is_out_of_memory) {
		*scenario = *calibration->options->costed->scenario;
		psd_schema_walk(&psd_scenario_root, scenario, NULL, make_absolute, &paths);
		fit(scenario, calibration);
		scenario->profile_path = psd_file_name(profile_path.bytes);
		add_origin(text, calibration);
		add_fits(text, calibration);
		add_used_points(text, calibration);
		psd_scenario_add_text(text, scenario);
	}
	while (paths.n > 0)
		free(paths.resolved[--paths.n]);
	psd_text_release(&profile_path);
	free(scenario);
}

/* ---- files ---- */

enum psd_status psd_calibrate_open(struct psd_calibration *calibration, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned f = 0; f < PSD_CALIBRATE_FILES && !status; f++) {
		struct psd_text path = {.bytes = NULL};

		add_path(&path, calibration, f);
		status = path.is_out_of_memory
				 ? psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a calibration")
				 : psd_output_open(&calibration->files[f], path.bytes, err);
		psd_text_release(&path);
	}
	return status;
}

/* The scenario is committed last, since it names the other files. */
enum psd_status psd_calibrate_write(struct psd_calibration *calibration, struct psd_error *err)
{
	static void (*const add[PSD_CALIBRATE_FILES])(struct psd_text *, const struct psd_calibration *) = {
		[PSD_CALIBRATE_SCENARIO] = add_scenario,
		[PSD_CALIBRATE_PROFILE] = add_profile,
		[PSD_CALIBRATE_POINTS] = add_points,
	};

	for (unsigned f = 0; f < PSD_CALIBRATE_FILES; f++) {
		struct psd_text text = {.bytes = NULL};
		bool is_out_of_memory;

		add[f](&text, calibration);
		is_out_of_memory = text.is_out_of_memory;
		if (!is_out_of_memory) /* the commit checks the stream's error flag */
			fwrite(text.bytes, 1, text.length, calibration->files[f]);
		psd_text_release(&text);
		if (is_out_of_memory)
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a calibration");
	}
	return psd_outputs_commit(err);
}
