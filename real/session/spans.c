/* Records and their way into a trace. The files are read twice, for the beginning of time and for the text, and never
 * held in memory. */
#include "real/session/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

static void put(uint8_t *bytes, unsigned n_bytes, uint64_t value)
{
	for (unsigned i = 0; i < n_bytes; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *bytes, unsigned n_bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n_bytes; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

static uint64_t in_ns(double sec)
{
	return sec > 0.0 ? (uint64_t)(1e9 * sec + 0.5) : 0;
}

void psd_recorder_add(struct psd_recorder *recorder, const struct psd_span *span)
{
	uint8_t record[PSD_SPAN_BYTES] = {0};

	if (recorder->n_spans++ >= PSD_MAX_SPANS)
		return;
	put(record, 4, span->task.op);
	put(record + 4, 4, span->task.iteration);
	put(record + 8, 4, span->is_arrival);
	put(record + 16, 8, span->bytes);
	put(record + 24, 8, in_ns(span->start_sec));
	put(record + 32, 8, in_ns(span->end_sec));
	fwrite(record, sizeof(record), 1, recorder->file);
}

enum psd_status psd_recorder_finish(struct psd_recorder *recorder, struct psd_error *err)
{
	if (fflush(recorder->file) || ferror(recorder->file))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot keep what the trace needs: %s",
				     strerror(errno));
	return PSD_OK;
}

/* start_sec counts from zero_ns. False at the end of the file. */
static bool read_span(FILE *file, uint64_t zero_ns, struct psd_span *span)
{
	uint8_t record[PSD_SPAN_BYTES];

	if (fread(record, sizeof(record), 1, file) != 1)
		return false;
	*span = (struct psd_span){
		.task = {.op = (uint32_t)get(record, 4), .iteration = (uint32_t)get(record + 4, 4)},
		.is_arrival = get(record + 8, 4) == 1,
		.bytes = get(record + 16, 8),
		.start_sec = 1e-9 * (double)(get(record + 24, 8) - zero_ns),
		.end_sec = 1e-9 * (double)(get(record + 32, 8) - zero_ns),
	};
	return true;
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
		psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "no temporary file for the trace: %s", strerror(errno));
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
		rewind(spans->hosts[h].file);
		while (read_span(spans->hosts[h].file, 0, &found)) {
			found.host = h;
			span(context, program, &found);
		}
		if (ferror(spans->hosts[h].file))
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot read what was recorded: %s",
					     strerror(errno));
	}
	return PSD_OK;
}

/* ---- the trace ---- */

static uint64_t first_ns(const struct psd_spans *spans)
{
	uint64_t first = UINT64_MAX;
	uint8_t record[PSD_SPAN_BYTES];

	for (unsigned h = 0; h < spans->n_hosts; h++) {
		rewind(spans->hosts[h].file);
		while (fread(record, sizeof(record), 1, spans->hosts[h].file) == 1)
			if (get(record + 24, 8) < first)
				first = get(record + 24, 8);
	}
	return first;
}

static void write_text(FILE *out, struct psd_text *text)
{
	fwrite(text->bytes, 1, text->length, out);
	psd_text_clear(text);
}

/* The spans of a host whose process has ended. Returns their number. */
static uint64_t write_host(FILE *out, struct psd_text *text, const struct psd_case *traced, FILE *file, unsigned host,
			   uint64_t zero_ns, uint32_t *last_iteration)
{
	struct psd_span span;
	uint64_t n_spans = 0;

	rewind(file);
	for (; read_span(file, zero_ns, &span); n_spans++) {
		if (span.task.op >= traced->program.n_ops)
			continue;
		span.host = host;
		*last_iteration = span.task.iteration;
		psd_trace_add_span(text, &traced->program, &span);
		write_text(out, text);
	}
	return n_spans;
}

enum psd_status psd_spans_write(const struct psd_spans *spans, FILE *out, const struct psd_case *traced,
				const char *executor, uint32_t *last_iteration, struct psd_error *err)
{
	const uint64_t zero_ns = first_ns(spans);
	struct psd_text text = {.bytes = NULL};
	enum psd_status status = PSD_OK;
	uint32_t last;

	*last_iteration = UINT32_MAX;
	psd_trace_add_head(&text, traced, executor);
	write_text(out, &text);
	for (unsigned h = 0; h < spans->n_hosts && !status; h++) {
		FILE *file = spans->hosts[h].file;

		if (write_host(out, &text, traced, file, h, zero_ns, &last) >= PSD_MAX_SPANS &&
		    *last_iteration == UINT32_MAX)
			*last_iteration = last;
		if (ferror(file))
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot read what the trace needs: %s",
					       strerror(errno));
	}
	psd_trace_add_end(&text);
	write_text(out, &text);
	if (!status && text.is_out_of_memory)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a trace");
	psd_text_release(&text);
	return status;
}
