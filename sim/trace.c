/* Spans as trace events. Every line is one event, so that the order of spans is the order of lines. */
#define _GNU_SOURCE 1

#include "sim/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/children.h"
#include "sim/json.h"
#include "sim/result.h"

/* Rows of a process; 1 to 5 are enum psd_resource plus one. */
enum { ROW_NETWORK_IN = PSD_RESOURCES + 1 };

static const char *const row_names[] = {"compute", "copy out", "copy in", "host CPU", "network out", "network in"};

/* By enum psd_pattern: what a message is for. */
static const char *const pattern_names[PSD_PATTERNS] = {"push", "pull", "broadcast", "factors", "matrix", "ring"};

/* ---- the format ---- */

static void begin_event(struct psd_trace_writer *writer)
{
	fputs(writer->has_event ? ",\n" : "\n", writer->out);
	writer->has_event = true;
}

static void name_process(struct psd_trace_writer *writer, unsigned host)
{
	const struct psd_layout *layout = &writer->traced->plan.layout;
	const bool is_worker = psd_layout_is_worker(layout, host);

	begin_event(writer);
	fprintf(writer->out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"%s %u\"}}", host,
		is_worker ? "worker" : "server", is_worker ? host : host - layout->workers);
	for (unsigned row = 1; row <= ROW_NETWORK_IN; row++) {
		begin_event(writer);
		fprintf(writer->out, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}}",
			host, row, row_names[row - 1]);
	}
}

void psd_trace_begin(struct psd_trace_writer *writer, FILE *out, const struct psd_case *traced)
{
	const struct psd_scenario *scenario = traced->matter->scenario;
	const unsigned n_hosts = psd_layout_hosts(&traced->plan.layout);

	*writer = (struct psd_trace_writer){out, traced, false};
	fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"scenario\":", out);
	psd_json_write_string(out, scenario->title);
	fputs(",\"system\":", out);
	psd_json_write_string(out, traced->system->name);
	fprintf(out, ",\"fidelity\":\"%s\",\"nodes\":%u},\"traceEvents\":[", psd_fidelity_names[scenario->fidelity],
		traced->point.nodes);
	for (unsigned host = 0; host < n_hosts; host++)
		name_process(writer, host);
}

static const char *category(const struct psd_op *op, bool is_arrival)
{
	if (is_arrival)
		return "receive";
	return psd_op_kind_names[op->kind];
}

static const char *verb(const struct psd_op *op)
{
	switch (op->kind) {
	case PSD_OP_COPY_OUT: return "copy out";
	case PSD_OP_COPY_IN: return "copy in";
	case PSD_OP_SEND: return pattern_names[op->payload.pattern];
	case PSD_OP_FACTOR: return "rebuild";
	case PSD_OP_COLLECTIVE: return "all-reduce";
	default: return psd_op_kind_names[op->kind];
	}
}

/* "push fc6 2/9"; what belongs to no layer is its verb alone. */
static void write_name(FILE *out, const struct psd_plan *plan, const struct psd_op *op)
{
	char name[200];
	const unsigned n_slices = op->item >= 0 ? plan->items[op->item].n_slices : 1;
	const char *layer_name = plan->graph->layers[op->layer].name;

	if (op->kind == PSD_OP_BARRIER)
		snprintf(name, sizeof(name), "end of iteration");
	else if (n_slices > 1 && op->kind != PSD_OP_FACTOR)
		snprintf(name, sizeof(name), "%s %.150s %u/%u", verb(op), layer_name, op->slice + 1, n_slices);
	else
		snprintf(name, sizeof(name), "%s %.150s", verb(op), layer_name);
	psd_json_write_string(out, name);
}

void psd_trace_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct psd_trace_writer *writer = context;
	const struct psd_op *op = &program->ops[span->task.op];
	const int row = span->is_arrival ? ROW_NETWORK_IN : (int)op->resource + 1;

	begin_event(writer);
	fputs("{\"name\":", writer->out);
	write_name(writer->out, program->plan, op);
	fprintf(writer->out,
		",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"iteration\":%" PRIu32
		",\"bytes\":%" PRIu64 "}}",
		category(op, span->is_arrival), span->host, row, 1e6 * span->start_sec, 1e6 * (span->end_sec - span->start_sec),
		span->task.iteration, span->bytes);
}

void psd_trace_end(struct psd_trace_writer *writer)
{
	fputs("\n]}\n", writer->out);
}

/* ---- the file ---- */

static enum psd_status cannot_write(const char *path, int reason, struct psd_error *err)
{
	return psd_error_set(err, PSD_EFILE, (struct psd_place){path, 0, 0}, "cannot write the trace: %s", strerror(reason));
}

/* The mode that a plain open() would give a new file. */
static mode_t default_mode(void)
{
	const mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Opens a new file beside file->path, in the same folder so that the rename cannot fail half way. */
static enum psd_status open_beside(struct psd_trace_file *file, mode_t mode, struct psd_error *err)
{
	const size_t room = strlen(file->path) + sizeof(".XXXXXX");
	int fd;

	file->temporary = malloc(room);
	if (!file->temporary)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	snprintf(file->temporary, room, "%s.XXXXXX", file->path);
	fd = mkstemp(file->temporary);
	if (fd < 0) {
		const int reason = errno;

		free(file->temporary);
		file->temporary = NULL;
		return cannot_write(file->path, reason, err);
	}
	file->out = fchmod(fd, mode) ? NULL : fdopen(fd, "w");
	if (file->out)
		return PSD_OK;
	const int reason = errno;

	close(fd);
	unlink(file->temporary);
	return cannot_write(file->path, reason, err);
}

static enum psd_status open_directly(struct psd_trace_file *file, struct psd_error *err)
{
	file->out = fopen(file->path, "w");
	return file->out ? PSD_OK : cannot_write(file->path, errno, err);
}

enum psd_status psd_trace_file_open(struct psd_trace_file *file, const char *path, struct psd_error *err)
{
	struct psd_trace_file opened = {.out = NULL};
	struct stat found;
	const bool is_there = stat(path, &found) == 0;
	const bool is_special = is_there && !S_ISREG(found.st_mode);
	enum psd_status status;

	/* the file behind a link is replaced, not the link; a pipe has no real path */
	opened.path = is_there && !is_special ? realpath(path, NULL) : strdup(path);
	if (!opened.path)
		return cannot_write(path, errno, err);
	if (is_special)
		status = open_directly(&opened, err);
	else
		status = open_beside(&opened, is_there ? found.st_mode & 0777 : default_mode(), err);
	if (status) {
		free(opened.path);
		free(opened.temporary);
		return status;
	}
	*file = opened;
	return PSD_OK;
}

void psd_trace_file_discard(struct psd_trace_file *file)
{
	if (file->out)
		fclose(file->out);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	*file = (struct psd_trace_file){.out = NULL};
}

enum psd_status psd_trace_file_commit(struct psd_trace_file *file, struct psd_error *err)
{
	int reason = 0;

	if (fclose(file->out))
		reason = errno;
	file->out = NULL;
	if (!reason && file->temporary && rename(file->temporary, file->path))
		reason = errno;
	if (!reason) {
		free(file->temporary);
		file->temporary = NULL;
	} else {
		cannot_write(file->path, reason, err);
	}
	psd_trace_file_discard(file);
	return reason ? PSD_ERUN : PSD_OK;
}

/* ---- the run ---- */

struct traced_run {
	FILE *out;
	const struct psd_subject_matter *matter;
	const struct psd_system *system;
	struct psd_point point;
};

static enum psd_status trace_in_child(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct traced_run *run = context;
	struct psd_trace_writer writer;
	struct psd_case made;
	enum psd_status status = psd_case_make(&made, run->matter, run->system, run->point, err);

	(void)job;
	if (status)
		return status;
	psd_trace_begin(&writer, run->out, &made);
	status = psd_simulate(&made, psd_trace_span, &writer, outcome, err);
	psd_trace_end(&writer);
	psd_case_release(&made);
	if (!status && (ferror(run->out) || fflush(run->out)))
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot write the trace: %s", strerror(errno));
	return status;
}

static void name_run(const void *context, unsigned job, char *text, size_t room)
{
	const struct traced_run *run = context;
	char point[64];

	(void)job;
	snprintf(text, room, "trace of %s at %s", run->system->name, psd_result_point_name(&run->point, point, sizeof(point)));
}

enum psd_status psd_trace_run(FILE *out, const struct psd_subject_matter *matter, const struct psd_system *system,
			      struct psd_point point, int *signal_number, struct psd_error *err)
{
	struct traced_run run = {out, matter, system, point};
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
