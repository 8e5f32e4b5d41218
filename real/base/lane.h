/* A line of threads that carries out jobs for the event loop, in order, and wakes it by an eventfd when one is done. A
 * job passes through one stage or two, each with a thread: while the second waits for what the first has begun, that
 * begins the next. Refuses to choose: who starts jobs decides what comes next. */
#ifndef PSD_REAL_LANE_H
#define PSD_REAL_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

typedef void psd_lane_job_fn(void *context);

enum { PSD_LANE_JOBS = 8, PSD_LANE_STAGES = 2 }; /* jobs started and not yet taken notice of, at most */

/* Fields are private to lane.c. */
struct psd_lane {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct psd_lane_stage {
		struct psd_lane *lane;
		pthread_t thread;
		uint64_t n_passed; /* jobs */
	} stages[PSD_LANE_STAGES];
	unsigned n_stages;
	struct {
		psd_lane_job_fn *job;
		void *context;
	} jobs[PSD_LANE_JOBS];
	psd_lane_job_fn *finish; /* the second stage of every job */
	uint64_t n_started;
	uint64_t n_taken; /* that notice was taken of */
	bool is_ending;
	int wake_fd;
};

/* *lane stays where it is until psd_lane_close(). wake_fd: a borrowed eventfd; -1: who starts a job waits. finish: what
 * is to be done after each job, in another thread, before it counts as done; or NULL. PSD_ERUN. */
enum psd_status psd_lane_open(struct psd_lane *lane, int wake_fd, psd_lane_job_fn *finish,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Waits for the jobs that were started. */
void psd_lane_close(struct psd_lane *lane);
/* Gives it a job more. One thread only, as are the next three. */
void psd_lane_start(struct psd_lane *lane, psd_lane_job_fn *job, void *context);
/* True once for each job that is done, in order. */
bool psd_lane_take_done(struct psd_lane *lane);
/* There are jobs that notice was not taken of. */
bool psd_lane_is_busy(const struct psd_lane *lane);
/* Waits until all jobs are done, and takes notice. */
void psd_lane_wait(struct psd_lane *lane);
/* Processor seconds of its threads so far; any thread, until psd_lane_close(). */
double psd_lane_cpu_sec(const struct psd_lane *lane);
/* Starts a job and waits. */
void psd_lane_run(struct psd_lane *lane, psd_lane_job_fn *job, void *context);

#endif
