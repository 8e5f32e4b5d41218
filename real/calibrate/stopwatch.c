#define _DEFAULT_SOURCE
#include "real/calibrate/stopwatch.h"

#include <time.h>

static double now_sec(const struct psd_stopwatch *watch)
{
	struct timespec now;

	clock_gettime(watch->is_cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t psd_stopwatch_mark(struct psd_stopwatch *watch, enum psd_stream stream)
{
	if (watch->kind->is_asynchronous)
		return watch->kind->mark(watch->device, stream);
	watch->clock_sec[watch->n_marks % PSD_MOST_MARKS] = now_sec(watch);
	return watch->n_marks++;
}

enum psd_status psd_stopwatch_wait(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t mark,
				   struct psd_error *err)
{
	return watch->kind->is_asynchronous ? watch->kind->wait(watch->device, stream, mark, err) : PSD_OK;
}

double psd_stopwatch_between_sec(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t from, uint64_t to)
{
	if (watch->kind->is_asynchronous)
		return watch->kind->between_sec(watch->device, stream, from, to);
	return watch->clock_sec[to % PSD_MOST_MARKS] - watch->clock_sec[from % PSD_MOST_MARKS];
}
