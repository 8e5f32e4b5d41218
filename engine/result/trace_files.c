/* Events are written as they come, so that memory does not grow with the trace. */
#include "engine/result/trace_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/output.h"

static const char rank_mark[] = "%r";

bool psd_trace_path_is_by_rank(const char *path)
{
	return strstr(path, rank_mark);
}

char *psd_trace_path_of(const char *path, unsigned rank)
{
	struct psd_text made = {.bytes = NULL};

	for (const char *mark; (mark = strstr(path, rank_mark)); path = mark + strlen(rank_mark))
		psd_text_add(&made, "%.*s%u", (int)(mark - path), path, rank);
	psd_text_add(&made, "%s", path);
	if (made.is_out_of_memory)
		psd_text_release(&made);
	return made.bytes;
}

/* A reader of the folder would take it for a worker of this run. */
static enum psd_status refuse_later_rank(const char *path, unsigned world_size, struct psd_error *err)
{
	char *later = psd_trace_path_of(path, world_size);
	FILE *found = later ? fopen(later, "r") : NULL;
	enum psd_status status = later ? PSD_OK : psd_out_of_memory(err);

	if (found)
		status = psd_error_set(err, PSD_EFILE, (struct psd_place){.path = later},
				       "is the trace of another run, since this one has %u workers: remove it, or name "
				       "another folder",
				       world_size);
	if (found)
		fclose(found);
	free(later);
	return status;
}

static enum psd_status open_one(struct psd_trace_files *files, const char *path, struct psd_error *err)
{
	char *own = psd_trace_path_of(path, files->first_rank + files->n_files);
	enum psd_status status =
		own ? psd_output_open(&files->files[files->n_files], own, err) : psd_out_of_memory(err);

	free(own);
	files->n_files += !status;
	return status;
}

enum psd_status psd_trace_files_open(struct psd_trace_files *files, const char *path, unsigned first_rank,
				     unsigned n_ranks, unsigned world_size, struct psd_error *err)
{
	struct psd_trace_files opened = {.first_rank = first_rank, .is_by_rank = psd_trace_path_is_by_rank(path)};
	const unsigned n_files = opened.is_by_rank ? n_ranks : 1;
	enum psd_status status = opened.is_by_rank ? refuse_later_rank(path, world_size, err) : PSD_OK;

	opened.files = calloc(n_files, sizeof(FILE *));
	if (!status && !opened.files)
		status = psd_out_of_memory(err);
	while (!status && opened.n_files < n_files)
		status = open_one(&opened, path, err);
	if (status) {
		psd_trace_files_discard(&opened);
		psd_trace_files_release(&opened);
		return status;
	}
	*files = opened;
	return PSD_OK;
}

static void write_text(struct psd_trace_files *files, unsigned f)
{
	psd_output_write(files->files[f], files->text.bytes, files->text.length);
	psd_text_clear(&files->text);
}

enum psd_status psd_trace_files_begin(struct psd_trace_files *files, const struct psd_case *traced,
				      const char *executor, bool is_predicted, struct psd_error *err)
{
	if (!files->is_by_rank) {
		files->until_now = calloc(psd_layout_hosts(&traced->plan.layout), sizeof(*files->until_now));
		psd_trace_add_head(&files->text, traced, executor);
		write_text(files, 0);
		return files->until_now ? PSD_OK : psd_out_of_memory(err);
	}
	files->ranks = calloc(files->n_files, sizeof(*files->ranks));
	if (!files->ranks)
		return psd_out_of_memory(err);
	for (unsigned f = 0; f < files->n_files; f++) {
		PSD_TRY(psd_rank_trace_init(&files->ranks[f], traced, files->first_rank + f, is_predicted, err));
		psd_rank_trace_add_head(&files->ranks[f], &files->text, traced, executor);
		write_text(files, f);
	}
	return PSD_OK;
}

static void add_to_one(struct psd_trace_files *files, const struct psd_program *program, const struct psd_span *span)
{
	if (span->task.op == program->next_op) /* an instant */
		return;
	psd_trace_add_span(&files->text, program, span);
	psd_trace_count(&files->text, span->host, &files->until_now[span->host], psd_trace_traffic(program, span),
			span->end_sec);
	write_text(files, 0);
}

void psd_trace_files_add(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct psd_trace_files *files = context;
	const unsigned f = span->host - files->first_rank;

	if (!files->is_by_rank) {
		add_to_one(files, program, span);
		return;
	}
	if (span->host < files->first_rank || f >= files->n_files) /* a separate server has no rank */
		return;
	psd_rank_trace_add_span(&files->ranks[f], &files->text, program, span);
	write_text(files, f);
}

enum psd_status psd_trace_files_end(struct psd_trace_files *files, struct psd_error *err)
{
	for (unsigned f = 0; f < files->n_files; f++) {
		if (files->is_by_rank)
			psd_rank_trace_add_end(&files->ranks[f], &files->text);
		else
			psd_trace_add_end(&files->text);
		write_text(files, f);
	}
	return files->text.is_out_of_memory ? psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a trace")
					    : PSD_OK;
}

enum psd_status psd_trace_files_flush(struct psd_trace_files *files, struct psd_error *err)
{
	for (unsigned f = 0; f < files->n_files; f++)
		if (fflush(files->files[f]) || ferror(files->files[f]))
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot write the trace: %s", strerror(errno));
	return PSD_OK;
}

void psd_trace_files_discard(struct psd_trace_files *files)
{
	for (unsigned f = 0; f < files->n_files; f++) {
		psd_output_discard(files->files[f]);
		files->files[f] = NULL;
	}
}

void psd_trace_files_release(struct psd_trace_files *files)
{
	for (unsigned f = 0; files->ranks && f < files->n_files; f++)
		psd_rank_trace_release(&files->ranks[f]);
	free(files->ranks);
	free(files->until_now);
	free(files->files);
	psd_text_release(&files->text);
	*files = (struct psd_trace_files){.files = NULL};
}
