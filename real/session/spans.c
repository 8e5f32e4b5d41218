/* Records, and the trace made of them. Files are read twice, for their beginning and for the text, and never held in
 * memory. */
#include "real/session/spans.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

void psd_recorder_add_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct psd_recorder *recorder = context;

	(void)program;
	if (recorder->n_spans++ < PSD_MAX_SPANS)
		fwrite(span, sizeof(*span), 1, recorder->file);
}

enum psd_status psd_recorder_finish(struct psd_recorder *recorder, struct psd_error *err)
{
	if (fflush(recorder->file) || ferror(recorder->file))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot write spans of the trace: %s",
				     strerror(errno));
	return PSD_OK;
}

/* ---- files ---- */

enum psd_status psd_spans_open(struct psd_spans *spans, unsigned n_hosts, struct psd_error *err)
{
	struct psd_spans opened = {.n_hosts = n_hosts};

	opened.hosts = calloc(n_hosts, sizeof(*opened.hosts));
	if (!opened.hosts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a trace of %u hosts", n_hosts);
	for (unsigned h = 0; h < n_hosts; h++) {
		opened.hosts[h].file = tmpfile();
		if (opened.hosts[h].file)
			continue;
		psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot make a temporary file for the trace: %s",
			      strerror(errno));
		psd_spans_close(&opened);
		return PSD_ERUN;
	}
	*spans = opened;
	return PSD_OK;
}

void psd_spans_close(struct psd_spans *spans)
{
	for (unsigned h = 0; h < spans->n_hosts; h++)
		if (spans->hosts[h].file)
			fclose(spans->hosts[h].file);
	free(spans->hosts);
	*spans = (struct psd_spans){.hosts = NULL};
}

enum psd_status psd_spans_tell(const struct psd_spans *spans, const struct psd_program *program, psd_span_fn span,
			       void *context, struct psd_error *err)
{
	struct psd_span found;

	for (unsigned h = 0; h < spans->n_hosts; h++) {
		FILE *file = spans->hosts[h].file;

		rewind(file);
		while (fread(&found, sizeof(found), 1, file) == 1)
			span(context, program, &found);
		if (ferror(file))
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot read spans of the trace: %s",
					     strerror(errno));
	}
	return PSD_OK;
}

/* ---- the trace ---- */

struct trace {
	struct psd_trace_files *files;
	double zero_sec; /* time of the first span */
	unsigned host;	 /* host of the current spans, and their number */
	uint64_t n_spans;
	uint32_t last_iteration; /* see psd_spans_write() */
};

static void find_first(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct trace *trace = context;

	(void)program;
	trace->zero_sec = fmin(trace->zero_sec, span->start_sec);
}

static void write_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct trace *trace = context;
	struct psd_span moved = *span;

	trace->n_spans = span->host == trace->host ? trace->n_spans + 1 : 1;
	trace->host = span->host;
	if (trace->n_spans == PSD_MAX_SPANS && trace->last_iteration == UINT32_MAX)
		trace->last_iteration = span->task.iteration;
	moved.start_sec -= trace->zero_sec;
	moved.end_sec -= trace->zero_sec;
	psd_trace_files_add(trace->files, program, &moved);
}

enum psd_status psd_spans_write(const struct psd_spans *spans, struct psd_trace_files *files,
				const struct psd_case *traced, const char *executor, bool by_clock,
				uint32_t *last_iteration, struct psd_error *err)
{
	struct trace trace = {.files = files, .zero_sec = by_clock ? 0.0 : INFINITY, .last_iteration = UINT32_MAX};

	PSD_TRY(psd_trace_files_begin(files, traced, executor, false, err));
	if (!by_clock)
		PSD_TRY(psd_spans_tell(spans, &traced->program, find_first, &trace, err));
	PSD_TRY(psd_spans_tell(spans, &traced->program, write_span, &trace, err));
	PSD_TRY(psd_trace_files_end(files, err));
	*last_iteration = trace.last_iteration;
	return PSD_OK;
}
