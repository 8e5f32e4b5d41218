/* A lane: a queue of jobs that one or two threads execute in order, so that the event loop does not wait for them. When
 * a job is done, an eventfd wakes the loop. With two threads, every job has two stages, and each thread executes one
 * stage. While the second thread waits for a device, the first thread begins the next job. The caller chooses the order
 * of jobs. */
#ifndef PSD_REAL_LANE_H
#define PSD_REAL_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

typedef void psd_lane_job_fn(void *context);

enum {
	/* Largest number of jobs in a lane. A job counts from psd_lane_start() until psd_lane_take_done() has returned
	 * true for it. */
	PSD_LANE_JOBS = 8,
	PSD_LANE_STAGES = 2, /* largest number of threads of a lane */
};

/* A queue of jobs and the threads that execute them. Fields are private to lane.c. */
struct psd_lane {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct psd_lane_stage {
		struct psd_lane *lane;
		pthread_t thread;
		uint64_t n_passed; /* number of jobs whose stage in this thread has ended */
	} stages[PSD_LANE_STAGES];
	unsigned n_stages;
	struct {
		psd_lane_job_fn *job;
		void *context;
	} jobs[PSD_LANE_JOBS];
	/* Second stage of every job, executed by the second thread; NULL: there is only one thread. */
	psd_lane_job_fn *finish;
	uint64_t n_started;
	uint64_t n_taken; /* number of jobs for which psd_lane_take_done() has returned true */
	bool is_ending;
	int wake_fd;
};

/* Starts the threads of a lane. *lane must not be moved until psd_lane_close(). wake_fd: eventfd that is written when a
 * job is done, borrowed; -1: no eventfd, the caller waits for its jobs. finish: function that the second thread calls
 * with the context of each job, after the first thread has executed the job; NULL: there is no second thread. PSD_ERUN:
 * a thread cannot be started. */
enum psd_status psd_lane_open(struct psd_lane *lane, int wake_fd, psd_lane_job_fn *finish,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Waits until all started jobs are done, then ends the lane's threads. */
void psd_lane_close(struct psd_lane *lane);
/* Appends a job to the queue: job(context). This function, psd_lane_take_done(), _is_busy() and _wait() must be called
 * by one and the same thread. */
void psd_lane_start(struct psd_lane *lane, psd_lane_job_fn *job, void *context);
/* Returns true once for each job that is done, in the order of the queue. Returns false if no further job is done
 * now. */
bool psd_lane_take_done(struct psd_lane *lane);
/* True while psd_lane_take_done() has not yet returned true for all started jobs. */
bool psd_lane_is_busy(const struct psd_lane *lane);
/* Waits until all jobs are done. For all of them psd_lane_take_done() then counts as called. */
void psd_lane_wait(struct psd_lane *lane);
/* Returns the processor time that the lane's threads have used so far, seconds. Any thread, before psd_lane_close(). */
double psd_lane_cpu_sec(const struct psd_lane *lane);
/* Appends a job to the queue and waits until it is done. For this job psd_lane_take_done() then counts as called. */
void psd_lane_run(struct psd_lane *lane, psd_lane_job_fn *job, void *context);

#endif
