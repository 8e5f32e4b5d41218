/* A scenario file from end to end: the top level, the model and the compute here, the other sections in scenario_*.c.
 * Refuses to open any file but the scenario itself. */
#include "engine/scenario/scenario.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/document/fields.h"
#include "engine/document/overlay.h"
#include "engine/scenario/device.h"
#include "engine/scenario/scenario_parts.h"

enum { TITLE_MAX_BYTES = 200 };

const char *const psd_schedule_names[] = {"sequential", "wait-free", NULL};
const char *const psd_sync_names[] = {"ps", "sfb", "adam", "hybrid", "sacp", "ring", NULL};
const char *const psd_rule_names[] = {"bytes", "seconds", NULL};
const char *const psd_barrier_names[] = {"iteration", "layer", NULL};
const char *const psd_priority_names[] = {"generation", "forward", NULL};
const char *const psd_unit_names[] = {"layer", "tensor", NULL};
const char *const psd_fidelity_names[] = {"flow", "message", NULL};
const char *const psd_topology_names[] = {"star", "racks", "fat-tree", "platform", NULL};
static const char *const precision_names[] = {"fp32", "mixed", NULL};

#define FIELD(name, type, member)                                                                                      \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_scenario, member)

static const struct psd_field root_fields[] = {
	{FIELD("title", TEXT, title)},
	{.key = "model", .is_required = true},
	{.key = "compute", .is_required = true},
	{.key = "cluster", .is_required = true},
	{.key = "systems", .is_required = true},
	{.key = "sweep"},
	{FIELD("fidelity", CHOICE, fidelity), .names = psd_fidelity_names},
	{FIELD("iterations", UNSIGNED, iterations), .lowest = 1, .highest = PSD_MAX_MEASURED_ITERATIONS},
	{FIELD("seed", COUNT, seed), .highest = 4294967295.0},
	{.key = "baseline"},
	{FIELD("published", TEXT, published_path)},
	{.key = "train"},
	{.key = "emulation"},
	{.key = "calibration"},
	{.key = NULL},
};

/* Choices whose fields are no enum of the scenario: read as positions, then turned into what it holds. */
struct model_section {
	struct psd_scenario *scenario;
	const char *graph;
	unsigned batch;
	unsigned precision;
};

static const struct psd_field model_fields[] = {
	{.key = "graph", .kind = PSD_FIELD_TEXT, .offset = offsetof(struct model_section, graph), .is_required = true},
	{.key = "batch_per_worker",
	 .kind = PSD_FIELD_UNSIGNED,
	 .offset = offsetof(struct model_section, batch),
	 .is_required = true,
	 .lowest = 1,
	 .highest = 1e6},
	{.key = "precision",
	 .kind = PSD_FIELD_CHOICE,
	 .offset = offsetof(struct model_section, precision),
	 .names = precision_names},
	{.key = NULL},
};

struct compute_section {
	const char *profile;
	unsigned device;
	double images_per_sec;
	double jitter_ratio;
};

#define COMPUTE(name, type, member)                                                                                    \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct compute_section, member)

static const struct psd_field compute_fields[] = {
	{COMPUTE("profile", TEXT, profile)},
	{COMPUTE("device", CHOICE, device), .names = psd_device_names},
	{COMPUTE("images_per_sec", NUMBER, images_per_sec), .lowest = 0.001, .highest = 1e9},
	{COMPUTE("jitter", RATIO, jitter_ratio), .highest = 1},
	{.key = "replay"},
	{.key = NULL},
};

static enum psd_status out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
}

enum psd_status psd_scenario_join(const struct psd_scenario_reader *reader, const char *relative, const char **path)
{
	const char *scenario_path = reader->scenario->path;
	const char *slash = strrchr(scenario_path, '/');
	const size_t folder_length = slash && relative[0] != '/' ? (size_t)(slash - scenario_path) + 1 : 0;
	const size_t length = strlen(relative);
	char *joined = psd_arena_take(reader->arena, folder_length + length + 1);

	if (!joined)
		return out_of_memory(reader->err);
	memcpy(joined, scenario_path, folder_length);
	memcpy(joined + folder_length, relative, length);
	*path = joined;
	return PSD_OK;
}

static const struct psd_field calibration_fields[] = {
	{.key = "workers",
	 .kind = PSD_FIELD_UNSIGNED,
	 .offset = offsetof(struct psd_calibrated, workers),
	 .lowest = 1,
	 .highest = PSD_MAX_HOSTS,
	 .is_required = true},
	{.key = "bandwidth",
	 .kind = PSD_FIELD_RATE,
	 .offset = offsetof(struct psd_calibrated, bandwidth_bps),
	 .is_required = true},
	{.key = NULL},
};

static enum psd_status read_calibration(const struct psd_scenario_reader *reader)
{
	const struct psd_node *mapping = psd_node_child(reader->root, "calibration");

	return mapping ? psd_fields_read(&reader->scenario->calibration, mapping, "calibration", calibration_fields,
					 reader->err)
		       : PSD_OK;
}

static enum psd_status read_model(const struct psd_scenario_reader *reader)
{
	const struct psd_node *mapping = psd_node_child(reader->root, "model");
	struct model_section model = {.precision = 0};
	enum psd_status status = psd_fields_read(&model, mapping, "model", model_fields, reader->err);

	if (status)
		return status;
	reader->scenario->batch_per_worker = model.batch;
	reader->scenario->is_half = model.precision == 1;
	return psd_scenario_join(reader, model.graph, &reader->scenario->graph_path);
}

static enum psd_status read_compute(const struct psd_scenario_reader *reader)
{
	struct psd_scenario *scenario = reader->scenario;
	const struct psd_node *mapping = psd_node_child(reader->root, "compute");
	const struct psd_node *profile = psd_node_child(mapping, "profile"),
			      *device = psd_node_child(mapping, "device");
	struct compute_section compute = {.profile = NULL};
	enum psd_status status = psd_fields_read(&compute, mapping, "compute", compute_fields, reader->err);

	if (status)
		return status;
	if (!profile && !device)
		return psd_error_set(reader->err, PSD_EINVAL, mapping->at, "'compute' needs 'profile' or 'device'");
	if (profile && device)
		return psd_error_set(
			reader->err, PSD_EINVAL, device->key_at,
			"'device' and 'profile' cannot both say how fast a worker computes, must be one of them");
	scenario->images_per_sec = compute.images_per_sec;
	scenario->jitter_ratio = compute.jitter_ratio;
	if (device) {
		scenario->device_name = psd_device_names[compute.device];
		return PSD_OK;
	}
	return psd_scenario_join(reader, compute.profile, &scenario->profile_path);
}

static void set_defaults(struct psd_scenario *scenario)
{
	scenario->title = scenario->path;
	scenario->seed = 1;
	scenario->workers_per_node = 1;
	scenario->network.oversubscription_ratio = 1;
	scenario->network.payload_ratio = 1;
	scenario->baseline_system = -1;
}

/* It is a cell of the CSV: one line, and nothing that a spreadsheet takes for a formula. */
static enum psd_status check_title(const struct psd_scenario_reader *reader)
{
	const struct psd_node *title = psd_node_child(reader->root, "title");

	if (!title)
		return PSD_OK;
	if (strchr("=+-@", *title->text) || strlen(title->text) > TITLE_MAX_BYTES)
		return psd_error_set(
			reader->err, PSD_EINVAL, title->at,
			"'title' is '%.80s', must not begin with one of = + - @ nor be longer than %d bytes",
			title->text, TITLE_MAX_BYTES);
	for (const char *c = title->text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return psd_error_set(reader->err, PSD_EINVAL, title->at,
					     "'title' is '%.80s', must not contain control characters", title->text);
	return PSD_OK;
}

static enum psd_status read_sections(const struct psd_scenario_reader *reader)
{
	struct psd_scenario *scenario = reader->scenario;
	enum psd_status status = psd_fields_read(scenario, reader->root, "scenario", root_fields, reader->err);

	if (!status)
		status = check_title(reader);
	if (!status)
		status = read_model(reader);
	if (!status)
		status = read_compute(reader);
	if (!status)
		status = psd_scenario_read_emulation(reader);
	if (!status)
		status = psd_scenario_read_cluster(reader);
	if (!status)
		status = psd_scenario_read_systems(reader);
	if (!status)
		status = read_calibration(reader);
	if (!status)
		status = psd_scenario_read_train(reader);
	scenario->machine.threads = scenario->has_train ? scenario->train.threads : 1;
	if (!status && scenario->published_path && scenario->n_sweep_bandwidths)
		return psd_error_set(
			reader->err, PSD_EINVAL, psd_node_child(reader->root, "published")->key_at,
			"'published' cannot stand beside 'bandwidth' in 'sweep': its values are for one bandwidth");
	if (!status && scenario->published_path)
		status = psd_scenario_join(reader, scenario->published_path, &scenario->published_path);
	return status;
}

static enum psd_status apply_settings(struct psd_scenario_reader *reader, const char *const settings[])
{
	enum psd_status status = PSD_OK;

	for (; settings && *settings && !status; settings++)
		status = psd_overlay_set(&reader->root, *settings, reader->arena, reader->err);
	return status;
}

/* Takes the document over, also when it fails. */
static enum psd_status read_document(struct psd_scenario *scenario, struct psd_document *document, const char *path,
				     const char *const settings[], struct psd_error *err)
{
	struct psd_scenario fresh = {.document = document};
	struct psd_arena arena = {NULL};
	struct psd_scenario_reader reader = {&fresh, psd_document_root(document), &arena, err};
	enum psd_status status;

	fresh.path = psd_arena_copy(&arena, path, strlen(path));
	status = fresh.path ? apply_settings(&reader, settings) : out_of_memory(err);
	if (!status) {
		set_defaults(&fresh);
		status = read_sections(&reader);
	}
	fresh.owned = arena.blocks;
	if (status)
		psd_scenario_release(&fresh);
	else
		*scenario = fresh;
	return status;
}

enum psd_status psd_scenario_load(struct psd_scenario *scenario, const char *path, const char *const settings[],
				  struct psd_error *err)
{
	struct psd_document *document;
	enum psd_status status = psd_document_load(&document, path, err);

	return status ? status : read_document(scenario, document, path, settings, err);
}

enum psd_status psd_scenario_parse(struct psd_scenario *scenario, const char *path, const char *text, size_t length,
				   const char *const settings[], struct psd_error *err)
{
	struct psd_document *document;
	enum psd_status status = psd_document_parse(&document, path, text, length, err);

	return status ? status : read_document(scenario, document, path, settings, err);
}

void psd_scenario_release(struct psd_scenario *scenario)
{
	struct psd_arena arena = {scenario->owned};

	psd_document_free(scenario->document);
	psd_arena_release(&arena);
	*scenario = (struct psd_scenario){.document = NULL};
}
