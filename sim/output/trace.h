/* One case's simulation as Chrome trace events, in a file. */
#ifndef PSD_SIM_TRACE_H
#define PSD_SIM_TRACE_H

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/program/case.h"
#include "engine/result/trace.h"

/* ---- the format ---- */

struct psd_trace_writer {
	FILE *out;
	struct psd_text text; /* of one event */
};

/* Writes the head. Write errors stay in the stream's flag, here and below. */
void psd_trace_begin(struct psd_trace_writer *writer, FILE *out, const struct psd_case *traced);
/* A psd_span_fn; context is the writer. */
void psd_trace_span(void *writer, const struct psd_program *program, const struct psd_span *span);
/* PSD_ENOMEM when an event is missing. */
enum psd_status psd_trace_end(struct psd_trace_writer *writer, struct psd_error *err) PSD_MUST_CHECK;

/* Simulates the case in a child process and writes its trace to out. As psd_children_run(). */
enum psd_status psd_trace_run(FILE *out, const struct psd_subject_matter *matter, const struct psd_system *system,
			      struct psd_point point, int *signal_number, struct psd_error *err) PSD_MUST_CHECK;

#endif
