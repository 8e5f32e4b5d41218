/* Reads compute profiles (traces/profiles/README.md). Refuses a profile without an origin, and one whose layers are not
 * exactly the graph's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/csv.h"
#include "engine/base/units.h"
#include "engine/cost/costs.h"

enum head_key { BATCH, KIND, ORIGIN, DEVICE, GEMM, N_HEAD_KEYS };
static const char *const head_keys[N_HEAD_KEYS] = {"batch", "kind", "origin", "device", "gemm_flops_per_sec"};

enum column { LAYER, FORWARD_SEC, BACKWARD_SEC, N_COLUMNS };
static const char header[] = "layer,forward_sec,backward_sec";

struct profile {
	struct psd_csv csv;
	const struct psd_graph *graph;
	struct psd_costs *costs;
	const char *head[N_HEAD_KEYS]; /* values, point into the file's text */
	unsigned head_lines[N_HEAD_KEYS];
	unsigned *layer_lines; /* line of each layer's row, 0: not read yet */
	double batch_ratio;    /* the caller's batch over the profile's */
	struct psd_error *err;
};

/* Takes "key: value" of a known key; every other comment is free text. */
static enum psd_status take_comment(struct profile *profile)
{
	for (unsigned i = 0; i < N_HEAD_KEYS; i++) {
		const char *comment = profile->csv.comment;
		const size_t length = strlen(head_keys[i]);

		if (strncmp(comment, head_keys[i], length) || comment[length] != ':')
			continue;
		if (profile->head[i])
			return psd_error_set(profile->err, PSD_EINVAL, profile->csv.at, "'%s' is already in line %u",
					     head_keys[i], profile->head_lines[i]);
		profile->head[i] = comment + length + 1 + strspn(comment + length + 1, " \t");
		profile->head_lines[i] = profile->csv.at.line;
	}
	return PSD_OK;
}

static enum psd_status refuse_head(const struct profile *profile, enum head_key key, const char *accepted)
{
	const struct psd_place at = {.path = profile->csv.at.path, .line = profile->head_lines[key]};

	return psd_error_set(profile->err, PSD_EINVAL, at, "'%s' is '%.80s', must be %s", head_keys[key],
			     profile->head[key], accepted);
}

static bool is_source(const char *text)
{
	for (const char *const *name = psd_costs_source_names; *name; name++)
		if (!strcmp(text, *name))
			return true;
	return false;
}

/* The first word names the device, as in "cpu, 2 at a time". */
static const struct psd_device_row *device_of(const char *text)
{
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, " ,;("), text);
	return psd_device_find(name);
}

static enum psd_status check_head(struct profile *profile, unsigned batch)
{
	const char *const *head = profile->head;
	uint64_t profile_batch;

	for (unsigned i = 0; i < N_HEAD_KEYS; i++)
		if (!head[i] || !*head[i])
			return psd_error_set(profile->err, PSD_EINVAL, profile->csv.at,
					     "the comments above must have a line '# %s: ...'", head_keys[i]);
	if (!psd_units_read_count(head[BATCH], &profile_batch) || profile_batch < 1)
		return refuse_head(profile, BATCH, "a whole number, 1 or more");
	if (!is_source(head[KIND]))
		return refuse_head(profile, KIND, "measured, scaled or model");
	if (!psd_units_read_flop_rate(head[GEMM], &profile->costs->gemm_flops_per_sec) ||
	    profile->costs->gemm_flops_per_sec <= 0)
		return refuse_head(profile, GEMM, psd_units_flop_rate_help);
	while (strcmp(head[KIND], psd_costs_source_names[profile->costs->source]))
		profile->costs->source++;
	profile->costs->has_profile_gemm = true;
	profile->costs->device = device_of(head[DEVICE]);
	/* a device outside of the table counts as an accelerator */
	profile->costs->has_own_memory = !profile->costs->device || !profile->costs->device->shares_memory;
	profile->batch_ratio = batch / (double)profile_batch;
	return psd_csv_check_header(&profile->csv, header, profile->err);
}

static enum psd_status read_seconds(const struct profile *profile, enum column column, double *sec)
{
	const char *text = profile->csv.cells[column];

	if (psd_units_read_number(text, sec) && *sec >= 0) {
		*sec *= profile->batch_ratio;
		return PSD_OK;
	}
	return psd_error_set(profile->err, PSD_EINVAL, profile->csv.at,
			     "'%s' is '%.80s', must be a number of seconds, 0 or more",
			     column == FORWARD_SEC ? "forward_sec" : "backward_sec", text);
}

static enum psd_status find_layer(const struct profile *profile, unsigned *found)
{
	const struct psd_graph *graph = profile->graph;
	const char *name = profile->csv.cells[LAYER];

	for (unsigned i = 0; i < graph->n_layers; i++) {
		if (strcmp(graph->layers[i].name, name))
			continue;
		if (graph->layers[i].n_inputs == 0)
			return psd_error_set(profile->err, PSD_EINVAL, profile->csv.at,
					     "layer '%.80s' is an input, must be left out: inputs take no time", name);
		if (profile->layer_lines[i])
			return psd_error_set(profile->err, PSD_EINVAL, profile->csv.at,
					     "layer '%.80s' is already in line %u", name, profile->layer_lines[i]);
		*found = i;
		return PSD_OK;
	}
	return psd_error_set(profile->err, PSD_EINVAL, profile->csv.at, "layer '%.80s' is not in the graph '%.80s'",
			     name, graph->name);
}

static enum psd_status take_row(struct profile *profile)
{
	unsigned i = 0;

	if (profile->csv.n_cells != N_COLUMNS)
		return psd_error_set(profile->err, PSD_EINVAL, profile->csv.at,
				     "the line has %u cells, must have the %d of '%s'", profile->csv.n_cells, N_COLUMNS,
				     header);
	PSD_TRY(find_layer(profile, &i));
	PSD_TRY(read_seconds(profile, FORWARD_SEC, &profile->costs->forward_sec[i]));
	PSD_TRY(read_seconds(profile, BACKWARD_SEC, &profile->costs->backward_sec[i]));
	profile->layer_lines[i] = profile->csv.at.line;
	return PSD_OK;
}

static enum psd_status check_complete(const struct profile *profile, bool has_header)
{
	const struct psd_place at = {.path = profile->csv.at.path};

	if (!has_header)
		return psd_error_set(profile->err, PSD_EINVAL, at, "the file has no header line, must have '%s'",
				     header);
	for (unsigned i = 0; i < profile->graph->n_layers; i++)
		if (!profile->layer_lines[i] && profile->graph->layers[i].n_inputs > 0)
			return psd_error_set(profile->err, PSD_EINVAL, at,
					     "has no row for layer '%.80s' of the graph '%.80s'",
					     profile->graph->layers[i].name, profile->graph->name);
	return PSD_OK;
}

static enum psd_status read_lines(struct profile *profile, unsigned batch)
{
	bool has_line = true, has_header = false;
	enum psd_status status = PSD_OK;

	while (!status && has_line) {
		status = psd_csv_next(&profile->csv, &has_line, profile->err);
		if (status || !has_line)
			continue;
		if (profile->csv.comment) {
			status = has_header ? PSD_OK : take_comment(profile);
			continue;
		}
		status = has_header ? take_row(profile) : check_head(profile, batch);
		has_header = true;
	}
	return status ? status : check_complete(profile, has_header);
}

enum psd_status psd_costs_from_profile(struct psd_costs *costs, const struct psd_graph *graph, const char *path,
				       unsigned batch, double samples_per_sec, struct psd_error *err)
{
	struct psd_costs fresh;
	struct profile profile = {.graph = graph, .costs = &fresh, .err = err};
	enum psd_status status;

	PSD_TRY(psd_costs_init(&fresh, graph, err));
	status = psd_csv_open(&profile.csv, path, err);
	if (status)
		goto release_costs;
	profile.layer_lines = calloc(graph->n_layers + (size_t)1, sizeof(*profile.layer_lines));
	status = profile.layer_lines ? read_lines(&profile, batch) : psd_out_of_memory(err);
	if (!status)
		status = psd_costs_settle(&fresh, (struct psd_place){.path = path}, batch, samples_per_sec, err);
	free(profile.layer_lines);
	psd_csv_close(&profile.csv);
release_costs:
	if (status)
		psd_costs_release(&fresh);
	else
		*costs = fresh;
	return status;
}
