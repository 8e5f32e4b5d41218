/* Writes trace events as they occur, in the process that simulates. */
#include "sim/output/trace.h"

#include <stdio.h>

#include "sim/executor/simulate.h"
#include "sim/output/link_tracks.h"
#include "sim/sweep/children.h"
#include "sim/sweep/sweep.h"

struct traced_run {
	struct psd_trace_files *files;
	const struct psd_costed_model *costed;
	const struct psd_system *system;
	struct psd_point point;
	enum psd_detail detail;
};

struct tracks {
	struct psd_trace_files *files;
	struct psd_link_tracks links;
};

/* Links belong to no rank: files by rank have none. */
static void take_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct tracks *tracks = context;

	psd_trace_files_add(tracks->files, program, span);
	if (!tracks->files->is_by_rank)
		psd_link_tracks_add(&tracks->links, program, span);
}

static enum psd_status trace_in_child(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct traced_run *run = context;
	struct tracks tracks = {.files = run->files};
	struct psd_case made;

	(void)job;
	PSD_TRY(psd_case_make(&made, run->costed, run->system, run->point, err));
	tracks.links.platform = psd_simulate_platform(&made);
	enum psd_status status =
		psd_trace_files_begin(run->files, &made, psd_sim_executor(run->costed->scenario, false), true, err);
	if (!status)
		status = psd_simulate(&made, run->detail, take_span, &tracks, outcome, err);
	if (!status)
		psd_link_tracks_add_text(&tracks.links, &run->files->text, psd_layout_hosts(&made.plan.layout));
	if (!status)
		status = psd_trace_files_end(run->files, err);
	if (!status)
		status = psd_trace_files_flush(run->files, err);
	psd_link_tracks_release(&tracks.links);
	psd_case_release(&made);
	return status;
}

static void name_run(const void *context, unsigned job, char *text, size_t room)
{
	const struct traced_run *run = context;
	char point[64];

	(void)job;
	snprintf(text, room, "trace of %s at %s", run->system->name,
		 psd_result_point_name(&run->point, point, sizeof(point)));
}

enum psd_status psd_trace_run(struct psd_trace_files *files, const struct psd_costed_model *costed,
			      const struct psd_system *system, struct psd_point point, enum psd_detail detail,
			      int *signal_number, struct psd_error *err)
{
	struct traced_run run = {files, costed, system, point, detail};
	struct psd_outcome outcome;
	const struct psd_children children = {
		.work = trace_in_child,
		.name = name_run,
		.context = &run,
		.n_jobs = 1,
		.n_at_once = 1,
	};

	return psd_children_run(&children, &outcome, signal_number, err);
}
