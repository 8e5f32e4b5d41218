/* The line on standard error that shows the number of finished jobs of a sweep, and the time that the rest takes. */
#ifndef PSD_SIM_PROGRESS_H
#define PSD_SIM_PROGRESS_H

#include <stdbool.h>

#include "engine/base/text.h"

struct psd_progress {
	bool is_shown;
	unsigned n_jobs;
	double start_sec, shown_sec; /* times of the start and of the last line */
};

void psd_progress_start(struct psd_progress *progress, unsigned n_jobs, bool is_shown);
/* Overwrites the line, unless it was shown less than a tenth of a second ago and a job is left. name: name of the job
 * that started last. */
void psd_progress_show(struct psd_progress *progress, unsigned n_done, const char *name);
/* Removes the line. */
void psd_progress_end(const struct psd_progress *progress);
/* Appends the time that the remaining jobs take if they are as fast as the finished ones: "12 s left, ". Appends
 * nothing before the first job is done, and in the first second. */
void psd_progress_add_left(struct psd_text *text, unsigned n_done, unsigned n_jobs, double elapsed_sec);

#endif
