/* One mutex, one condition; the eventfd is written after the job, so that a reader of it finds the job done. For a job
 * and its end nobody is woken with the mutex held: on a processor that both threads share the one that wakes up would
 * run into it and have to be switched to once more. */
#define _GNU_SOURCE
#include "real/base/lane.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *live(void *context)
{
	struct psd_lane *lane = context;
	const uint64_t one = 1;
	ssize_t written;

	pthread_mutex_lock(&lane->mutex);
	for (;;) {
		while (!lane->is_ending && (!lane->job || lane->is_done))
			pthread_cond_wait(&lane->changed, &lane->mutex);
		if (!lane->job || lane->is_done)
			break;
		pthread_mutex_unlock(&lane->mutex);
		lane->job(lane->context);
		pthread_mutex_lock(&lane->mutex);
		lane->is_done = true;
		pthread_mutex_unlock(&lane->mutex);
		pthread_cond_broadcast(&lane->changed);
		/* the counter cannot be full: the loop empties it */
		written = lane->wake_fd < 0 ? 0 : write(lane->wake_fd, &one, sizeof(one));
		(void)written;
		pthread_mutex_lock(&lane->mutex);
	}
	pthread_mutex_unlock(&lane->mutex);
	return NULL;
}

enum psd_status psd_lane_open(struct psd_lane *lane, int wake_fd, struct psd_error *err)
{
	int error;

	*lane = (struct psd_lane){.wake_fd = wake_fd};
	pthread_mutex_init(&lane->mutex, NULL);
	pthread_cond_init(&lane->changed, NULL);
	error = pthread_create(&lane->thread, NULL, live, lane);
	if (!error)
		return PSD_OK;
	pthread_cond_destroy(&lane->changed);
	pthread_mutex_destroy(&lane->mutex);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot start a thread: %s", strerror(error));
}

void psd_lane_close(struct psd_lane *lane)
{
	pthread_mutex_lock(&lane->mutex);
	lane->is_ending = true;
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->mutex);
	pthread_join(lane->thread, NULL);
	pthread_cond_destroy(&lane->changed);
	pthread_mutex_destroy(&lane->mutex);
}

void psd_lane_start(struct psd_lane *lane, psd_lane_job_fn *job, void *context)
{
	pthread_mutex_lock(&lane->mutex);
	assert(!lane->job);
	lane->job = job;
	lane->context = context;
	pthread_mutex_unlock(&lane->mutex);
	pthread_cond_broadcast(&lane->changed);
}

bool psd_lane_take_done(struct psd_lane *lane)
{
	bool was_done;

	pthread_mutex_lock(&lane->mutex);
	was_done = lane->is_done;
	if (was_done) {
		lane->is_done = false;
		lane->job = NULL;
	}
	pthread_mutex_unlock(&lane->mutex);
	return was_done;
}

void psd_lane_wait(struct psd_lane *lane)
{
	pthread_mutex_lock(&lane->mutex);
	while (!lane->is_done)
		pthread_cond_wait(&lane->changed, &lane->mutex);
	lane->is_done = false;
	lane->job = NULL;
	pthread_mutex_unlock(&lane->mutex);
}

double psd_lane_cpu_sec(const struct psd_lane *lane)
{
	struct timespec time = {0, 0};
	clockid_t clock;

	if (!pthread_getcpuclockid(lane->thread, &clock)) /* every Linux has one */
		(void)clock_gettime(clock, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void psd_lane_run(struct psd_lane *lane, psd_lane_job_fn *job, void *context)
{
	psd_lane_start(lane, job, context);
	psd_lane_wait(lane);
}
