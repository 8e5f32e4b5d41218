/* Trace events into a file, as they come. */
#define _GNU_SOURCE 1

#include "sim/output/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/executor/simulate.h"
#include "sim/sweep/children.h"
#include "sim/sweep/sweep.h"

/* ---- the format ---- */

static void write_text(struct psd_trace_writer *writer)
{
	fwrite(writer->text.bytes, 1, writer->text.length, writer->out);
	psd_text_clear(&writer->text);
}

void psd_trace_begin(struct psd_trace_writer *writer, FILE *out, const struct psd_case *traced)
{
	*writer = (struct psd_trace_writer){.out = out};
	psd_trace_add_head(&writer->text, traced, psd_sim_executor(traced->matter->scenario, false));
	write_text(writer);
}

void psd_trace_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct psd_trace_writer *writer = context;

	psd_trace_add_span(&writer->text, program, span);
	write_text(writer);
}

enum psd_status psd_trace_end(struct psd_trace_writer *writer, struct psd_error *err)
{
	const bool is_complete = !writer->text.is_out_of_memory;

	psd_trace_add_end(&writer->text);
	write_text(writer);
	psd_text_release(&writer->text);
	return is_complete ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a trace");
}

/* ---- the file ---- */

static enum psd_status cannot_write(const char *path, int reason, struct psd_error *err)
{
	return psd_error_set(err, PSD_EFILE, (struct psd_place){path, 0, 0}, "cannot write the trace: %s",
			     strerror(reason));
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
	struct psd_error end_err;
	struct psd_case made;
	enum psd_status status = psd_case_make(&made, run->matter, run->system, run->point, err);

	(void)job;
	if (status)
		return status;
	psd_trace_begin(&writer, run->out, &made);
	status = psd_simulate(&made, psd_trace_span, &writer, outcome, err);
	if (psd_trace_end(&writer, &end_err) && !status) {
		*err = end_err;
		status = end_err.status;
	}
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
	snprintf(text, room, "trace of %s at %s", run->system->name,
		 psd_result_point_name(&run->point, point, sizeof(point)));
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
