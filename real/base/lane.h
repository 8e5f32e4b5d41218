/* A thread that carries out one job at a time for the event loop, and wakes it by an eventfd when the job is done.
 * Refuses to queue: the scheduler decides what comes next. */
#ifndef PSD_REAL_LANE_H
#define PSD_REAL_LANE_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/base/error.h"

typedef void psd_lane_job_fn(void *context);

/* Fields are private to lane.c. */
struct psd_lane {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	psd_lane_job_fn *job; /* NULL: idle */
	void *context;
	bool is_done; /* the job is over and nobody has taken notice yet */
	bool is_ending;
	int wake_fd;
};

/* *lane stays where it is until psd_lane_close(). wake_fd: a borrowed eventfd; -1: who starts a job waits. PSD_ERUN. */
enum psd_status psd_lane_open(struct psd_lane *lane, int wake_fd, struct psd_error *err) PSD_MUST_CHECK;
/* Waits for the job that runs. */
void psd_lane_close(struct psd_lane *lane);
/* Begins a job; the one before must have been taken notice of. The loop's thread only, as is the next. */
void psd_lane_start(struct psd_lane *lane, psd_lane_job_fn *job, void *context);
/* True once for each job that is over. */
bool psd_lane_take_done(struct psd_lane *lane);
/* Waits for the end of the job that was started, and takes notice. */
void psd_lane_wait(struct psd_lane *lane);
/* Processor seconds of its thread so far; any thread, until psd_lane_close(). */
double psd_lane_cpu_sec(const struct psd_lane *lane);
/* Begins a job and waits for its end. */
void psd_lane_run(struct psd_lane *lane, psd_lane_job_fn *job, void *context);

#endif
