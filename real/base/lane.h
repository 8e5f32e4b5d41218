/* A queue of jobs that one or two threads execute in order for the event loop. An eventfd wakes the loop when a job is
 * done. Each thread is a stage that every job passes: while the second stage waits for a device, the first begins the
 * next job. Refuses to choose the order: that is the caller's. */
#ifndef PSD_REAL_LANE_H
#define PSD_REAL_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

typedef void psd_lane_job_fn(void *context);

enum { PSD_LANE_JOBS = 8, PSD_LANE_STAGES = 2 }; /* most jobs between psd_lane_start() and psd_lane_take_done() */

/* A lane: queue of jobs with its threads. Fields are private to lane.c. */
struct psd_lane {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct psd_lane_stage {
		struct psd_lane *lane;
		pthread_t thread;
		uint64_t n_passed; /* number of jobs that have passed the stage */
	} stages[PSD_LANE_STAGES];
	unsigned n_stages;
	struct {
		psd_lane_job_fn *job;
		void *context;
	} jobs[PSD_LANE_JOBS];
	psd_lane_job_fn *finish; /* function that is the second stage of every job */
	uint64_t n_started;
	uint64_t n_taken; /* number of jobs that psd_lane_take_done() has returned */
	bool is_ending;
	int wake_fd;
};

/* Opens a lane, which must not move until psd_lane_close(). wake_fd: a borrowed eventfd; -1: the caller waits for each
 * job. finish: the second stage, called after each job in another thread; NULL: one stage. PSD_ERUN. */
enum psd_status psd_lane_open(struct psd_lane *lane, int wake_fd, psd_lane_job_fn *finish,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Waits for all started jobs, then ends the lane's threads. */
void psd_lane_close(struct psd_lane *lane);
/* Starts a job. Only one thread may call this function and the next three. */
void psd_lane_start(struct psd_lane *lane, psd_lane_job_fn *job, void *context);
/* Returns true once for each job that is done, in order. */
bool psd_lane_take_done(struct psd_lane *lane);
/* True while a started job was not returned by psd_lane_take_done(). */
bool psd_lane_is_busy(const struct psd_lane *lane);
/* Waits until all jobs are done, and takes them. */
void psd_lane_wait(struct psd_lane *lane);
/* Processor seconds used by the lane's threads so far. Any thread, until psd_lane_close(). */
double psd_lane_cpu_sec(const struct psd_lane *lane);
/* Starts a job and waits until it is done. */
void psd_lane_run(struct psd_lane *lane, psd_lane_job_fn *job, void *context);

#endif
