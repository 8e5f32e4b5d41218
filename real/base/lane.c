/* One mutex, one condition. The eventfd is written after the job, so that its reader finds the job done. Threads are
 * woken without the mutex held: on a shared processor the woken thread would block on it, and be switched to twice. */
#define _GNU_SOURCE
#include "real/base/lane.h"

#include <assert.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool is_last(const struct psd_lane_stage *stage)
{
	return stage == &stage->lane->stages[stage->lane->n_stages - 1];
}

/* Number of jobs that have reached this stage. */
static uint64_t n_arrived(const struct psd_lane_stage *stage)
{
	return stage == stage->lane->stages ? stage->lane->n_started : stage[-1].n_passed;
}

static void pass(struct psd_lane_stage *stage)
{
	struct psd_lane *lane = stage->lane;
	const uint64_t at = stage->n_passed % PSD_LANE_JOBS;
	psd_lane_job_fn *job = stage == lane->stages ? lane->jobs[at].job : lane->finish;
	void *context = lane->jobs[at].context;
	const uint64_t one = 1;

	pthread_mutex_unlock(&lane->mutex);
	job(context);
	pthread_mutex_lock(&lane->mutex);
	stage->n_passed++;
	pthread_mutex_unlock(&lane->mutex);
	pthread_cond_broadcast(&lane->changed);
	/* the counter cannot be full: the loop empties it */
	const ssize_t written = is_last(stage) && lane->wake_fd >= 0 ? write(lane->wake_fd, &one, sizeof(one)) : 0;
	(void)written;
	pthread_mutex_lock(&lane->mutex);
}

static void *run_stage(void *context)
{
	struct psd_lane_stage *stage = context;
	struct psd_lane *lane = stage->lane;

	pthread_mutex_lock(&lane->mutex);
	for (;;) {
		while (stage->n_passed == n_arrived(stage) && !(lane->is_ending && stage->n_passed == lane->n_started))
			pthread_cond_wait(&lane->changed, &lane->mutex);
		if (stage->n_passed == n_arrived(stage))
			break;
		pass(stage);
	}
	pthread_mutex_unlock(&lane->mutex);
	return NULL;
}

enum psd_status psd_lane_open(struct psd_lane *lane, int wake_fd, psd_lane_job_fn *finish, struct psd_error *err)
{
	const unsigned n_stages = finish ? 2 : 1;
	int error = 0;

	*lane = (struct psd_lane){.wake_fd = wake_fd, .finish = finish};
	pthread_mutex_init(&lane->mutex, NULL);
	pthread_cond_init(&lane->changed, NULL);
	lane->n_stages = n_stages; /* before a thread reads it */
	for (unsigned s = 0; s < n_stages; s++)
		lane->stages[s].lane = lane;
	for (unsigned s = 0; s < n_stages && !error; s++) {
		error = pthread_create(&lane->stages[s].thread, NULL, run_stage, &lane->stages[s]);
		if (error) {
			lane->n_stages = s;
			psd_lane_close(lane);
		}
	}
	return error ? psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot start a thread: %s", strerror(error)) : PSD_OK;
}

void psd_lane_close(struct psd_lane *lane)
{
	pthread_mutex_lock(&lane->mutex);
	lane->is_ending = true;
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->mutex);
	for (unsigned s = 0; s < lane->n_stages; s++)
		pthread_join(lane->stages[s].thread, NULL);
	pthread_cond_destroy(&lane->changed);
	pthread_mutex_destroy(&lane->mutex);
}

void psd_lane_start(struct psd_lane *lane, psd_lane_job_fn *job, void *context)
{
	pthread_mutex_lock(&lane->mutex);
	assert(lane->n_started - lane->n_taken < PSD_LANE_JOBS);
	lane->jobs[lane->n_started % PSD_LANE_JOBS].job = job;
	lane->jobs[lane->n_started % PSD_LANE_JOBS].context = context;
	lane->n_started++;
	pthread_mutex_unlock(&lane->mutex);
	pthread_cond_broadcast(&lane->changed);
}

/* The caller holds the mutex. */
static uint64_t n_done(const struct psd_lane *lane)
{
	return lane->stages[lane->n_stages - 1].n_passed;
}

bool psd_lane_take_done(struct psd_lane *lane)
{
	pthread_mutex_lock(&lane->mutex);
	const bool was_done = lane->n_taken < n_done(lane);
	lane->n_taken += was_done;
	pthread_mutex_unlock(&lane->mutex);
	return was_done;
}

/* Only the calling thread writes these fields, so it needs no mutex. */
bool psd_lane_is_busy(const struct psd_lane *lane)
{
	return lane->n_taken < lane->n_started;
}

void psd_lane_wait(struct psd_lane *lane)
{
	pthread_mutex_lock(&lane->mutex);
	while (n_done(lane) < lane->n_started)
		pthread_cond_wait(&lane->changed, &lane->mutex);
	lane->n_taken = lane->n_started;
	pthread_mutex_unlock(&lane->mutex);
}

double psd_lane_cpu_sec(const struct psd_lane *lane)
{
	double sec = 0.0;

	for (unsigned s = 0; s < lane->n_stages; s++) {
		struct timespec time = {0, 0};
		clockid_t clock;

		if (!pthread_getcpuclockid(lane->stages[s].thread, &clock)) /* every Linux has one */
			(void)clock_gettime(clock, &time);
		sec += (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
	}
	return sec;
}

void psd_lane_run(struct psd_lane *lane, psd_lane_job_fn *job, void *context)
{
	psd_lane_start(lane, job, context);
	psd_lane_wait(lane);
}
