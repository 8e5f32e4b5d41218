#define _GNU_SOURCE 1

#include "sim/sweep/progress.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define LEAST_GAP_SEC 0.1

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void psd_progress_start(struct psd_progress *progress, unsigned n_jobs, bool is_shown)
{
	*progress = (struct psd_progress){.is_shown = is_shown, .n_jobs = n_jobs, .start_sec = now_sec()};
}

void psd_progress_add_left(struct psd_text *text, unsigned n_done, unsigned n_jobs, double elapsed_sec)
{
	if (n_done == 0 || elapsed_sec < 1.0)
		return;
	const double left_sec = ceil(elapsed_sec * (n_jobs - n_done) / n_done);
	if (left_sec < 120.0)
		psd_text_add(text, "%.0f s left, ", left_sec);
	else if (left_sec < 7200.0)
		psd_text_add(text, "%.0f min left, ", ceil(left_sec / 60.0));
	else
		psd_text_add(text, "%.1f h left, ", left_sec / 3600.0);
}

void psd_progress_show(struct psd_progress *progress, unsigned n_done, const char *name)
{
	struct psd_text left = {.bytes = NULL};
	const double sec = progress->is_shown ? now_sec() : 0.0;

	if (!progress->is_shown || sec - progress->shown_sec < LEAST_GAP_SEC)
		return;
	progress->shown_sec = sec;
	psd_progress_add_left(&left, n_done, progress->n_jobs, sec - progress->start_sec);
	fprintf(stderr, "\r%u of %u done, %sat %s\033[K", n_done, progress->n_jobs, left.bytes ? left.bytes : "", name);
	fflush(stderr);
	psd_text_release(&left);
}

void psd_progress_end(const struct psd_progress *progress)
{
	if (progress->is_shown)
		fputs("\r\033[K", stderr);
}
