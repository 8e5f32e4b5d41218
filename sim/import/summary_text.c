/* The summary of an import for people. */
#include <inttypes.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/grid.h"
#include "engine/base/units.h"
#include "sim/import/import.h"

static void add_row(struct psd_grid *grid, const char *name, double sec, double of_sec)
{
	psd_grid_add_row(grid);
	psd_grid_set(grid, 0, "%s", name);
	psd_grid_set_number(grid, 1, 1e3 * sec, 3);
	if (of_sec > 0)
		psd_grid_set_number(grid, 2, 100 * sec / of_sec, 1);
}

static void add_roles(struct psd_text *text, const struct psd_import *import)
{
	static const enum psd_role order[] = {PSD_ROLE_FORWARD,	   PSD_ROLE_BACKWARD, PSD_ROLE_OPTIMIZER,
					      PSD_ROLE_COLLECTIVE, PSD_ROLE_BUCKETS,  PSD_ROLE_DATA,
					      PSD_ROLE_NONE};
	const bool has_kernels = import->places.has_kernels;
	struct psd_grid grid = {.n_columns = 0};

	psd_grid_add_column(&grid, "median of", "a step", true);
	psd_grid_add_column(&grid, "", "ms", false);
	psd_grid_add_column(&grid, "share", "%", false);
	grid.is_number[1] = grid.is_number[2] = true;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (import->role_sec[order[i]] > 0)
			add_row(&grid, psd_role_names[order[i]], import->role_sec[order[i]], import->kernel_sec);
	add_row(&grid, has_kernels ? "all kernels" : "all operators", import->kernel_sec, import->kernel_sec);
	psd_grid_add_gap(&grid);
	add_row(&grid, has_kernels ? "device busy" : "operators", import->busy_sec, 0);
	add_row(&grid, has_kernels ? "launch gaps" : "between operators",
		import->step_sec > import->busy_sec ? import->step_sec - import->busy_sec : 0, 0);
	add_row(&grid, "step", import->step_sec, 0);
	psd_grid_add(text, &grid);
	psd_grid_release(&grid);
}

static void add_placed(struct psd_text *text, const struct psd_import *import)
{
	const char *first = "";

	psd_text_add(text,
		     "\nplaced: %.2f %% of %s time by operator, %.2f %% with the operator before it; not placed: "
		     "%.2f %%\n",
		     100 * import->sure_ratio, import->places.has_kernels ? "kernel" : "operator",
		     100 * import->near_ratio, 100 * import->loose_ratio);
	if (import->places.outside_sec > 0)
		psd_text_add(text, "outside of all steps: %.3f ms, left out\n", 1e3 * import->places.outside_sec);
	if (!import->places.has_marks)
		psd_text_add(text, "note: the trace has no ProfilerStep marks, so that it counts as one step\n");
	if (import->batch_source == PSD_BATCH_GRIDS)
		psd_text_add(text,
			     "note: the trace has no shapes; %u samples of a step follow from the grids of kernels\n",
			     import->batch);
	if (import->batch_source == PSD_BATCH_UNKNOWN)
		psd_text_add(text,
			     "note: the trace does not tell the samples of a step, which counts as one; --batch N "
			     "tells them\n");
	if (!import->match.n_silent)
		return;
	first = import->graph.layers[import->match.silent].name;
	psd_text_add(text,
		     "note: the last step has no operator for layers of the model with parameters, here %u; the first "
		     "is '",
		     import->match.n_silent);
	psd_text_add_plain(text, first);
	psd_text_add(text, "'\n");
}

/* Costs of a worker beside its layers: the optimiser as a rate over its bytes, the rest as seconds of an iteration. */
static void add_scenario(struct psd_text *text, const struct psd_import *import)
{
	const struct psd_import_spread *spread = &import->spread;
	const bool has_model = import->settings.model_path != NULL;
	const double idle_sec = import->step_sec > import->busy_sec ? import->step_sec - import->busy_sec : 0;
	const double rest_sec = idle_sec + import->role_sec[PSD_ROLE_DATA] + import->role_sec[PSD_ROLE_NONE];
	const double update_sec = import->role_sec[PSD_ROLE_OPTIMIZER];

	psd_text_add(text, "\nFor a scenario in the working directory:\n  model: {graph: ");
	psd_text_add_plain(text, has_model ? import->settings.model_path : import->settings.graph_path);
	psd_text_add(text, ", batch_per_worker: %u}\n  compute: {profile: ", import->batch);
	psd_text_add_plain(text, import->settings.profile_path);
	if (spread->ratio > 0)
		psd_text_add(text, ", spread: %.3g%%", 100 * spread->ratio);
	if (spread->tail_chance_ratio > 0)
		psd_text_add(text, ", tail: {chance: %.3g%%, factor: %.3g}", 100 * spread->tail_chance_ratio,
			     spread->tail_factor);
	psd_text_add(text, "}\n  cluster: {host: {iteration: %.4gms", 1e3 * rest_sec);
	if (has_model && update_sec > 0 && import->graph.parameters)
		psd_text_add(text, ", update: %.4gGBps", 4e-9 * (double)import->graph.parameters / update_sec);
	psd_text_add(text, "}}\n");
}

void psd_import_add_summary(struct psd_text *text, const struct psd_import *import)
{
	const struct psd_trace *trace = &import->trace;
	char events[PSD_UNITS_TEXT_MAX];

	psd_text_add_plain(text, psd_file_name(import->settings.trace_path));
	psd_text_add(text, ": %u steps, %s events, ", import->n_steps, psd_units_write_count(trace->n_events, events));
	if (!import->places.has_kernels)
		psd_text_add(text, "no kernels, so that operators are timed");
	else if (trace->device == PSD_TRACE_NONE)
		psd_text_add(text, "device not named");
	else
		psd_text_add_plain(text, psd_trace_string(trace, trace->device));
	if (trace->n_ranks)
		psd_text_add(text, ", rank %u of %u", trace->rank, trace->n_ranks);
	psd_text_add(text, "\n\n");
	add_roles(text, import);
	add_placed(text, import);
	psd_text_add(text, "layers: %.3f ms; p90 %.3f ms, p99 %.3f ms, spread %.2f %% over %u steps\n",
		     1e3 * import->layers_sec, 1e3 * import->spread.p90, 1e3 * import->spread.p99,
		     100 * import->spread.ratio, import->n_steps);
	psd_import_add_collectives(text, import);
	add_scenario(text, import);
}
