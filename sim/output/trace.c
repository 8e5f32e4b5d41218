/* Writes trace events to a FILE as they occur. */
#include "sim/output/trace.h"

#include <errno.h>
#include <string.h>

#include "sim/executor/simulate.h"
#include "sim/sweep/children.h"
#include "sim/sweep/sweep.h"

/* ---- the format ---- */

struct writer {
	FILE *out;
	struct psd_text text; /* text of one event */
};

static void write_text(struct writer *writer)
{
	fwrite(writer->text.bytes, 1, writer->text.length, writer->out);
	psd_text_clear(&writer->text);
}

static void write_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct writer *writer = context;

	psd_trace_add_span(&writer->text, program, span);
	write_text(writer);
}

/* ---- the run ---- */

struct traced_run {
	FILE *out;
	const struct psd_costed_model *costed;
	const struct psd_system *system;
	struct psd_point point;
	enum psd_detail detail;
};

static enum psd_status trace_in_child(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct traced_run *run = context;
	struct writer writer = {.out = run->out};
	struct psd_case made;
	enum psd_status status;

	PSD_TRY(psd_case_make(&made, run->costed, run->system, run->point, err));
	(void)job;
	psd_trace_add_head(&writer.text, &made, psd_sim_executor(run->costed->scenario, false));
	write_text(&writer);
	status = psd_simulate(&made, run->detail, write_span, &writer, outcome, err);
	psd_trace_add_end(&writer.text);
	write_text(&writer);
	if (!status && writer.text.is_out_of_memory)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a trace");
	psd_text_release(&writer.text);
	psd_case_release(&made);
	if (!status && (fflush(run->out) || ferror(run->out)))
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot write the trace: %s", strerror(errno));
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

enum psd_status psd_trace_run(FILE *out, const struct psd_costed_model *costed, const struct psd_system *system,
			      struct psd_point point, enum psd_detail detail, int *signal_number, struct psd_error *err)
{
	struct traced_run run = {out, costed, system, point, detail};
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
