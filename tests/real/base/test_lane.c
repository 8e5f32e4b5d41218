#include <criterion/criterion.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "real/base/lane.h"
#include "real/base/machine.h"

#define BUSY_SEC 0.05

enum { N_JOBS = 1000, LONG_MS = 10000 };

struct woken {
	struct psd_lane lane;
	int wake_fd;
	unsigned n_done;
};

static void open_lane(struct woken *woken)
{
	struct psd_error err;

	*woken = (struct woken){.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
	cr_assert_geq(woken->wake_fd, 0);
	cr_assert_eq(psd_lane_open(&woken->lane, woken->wake_fd, NULL, &err), PSD_OK);
}

static void close_lane(struct woken *woken)
{
	psd_lane_close(&woken->lane);
	close(woken->wake_fd);
}

static void count(void *context)
{
	++*(unsigned *)context;
}

static bool is_written(int wake_fd, int within_ms)
{
	struct pollfd polled = {.fd = wake_fd, .events = POLLIN};

	return poll(&polled, 1, within_ms) == 1;
}

Test(lane, a_reader_of_the_eventfd_finds_the_job_done)
{
	struct woken woken;

	open_lane(&woken);
	cr_expect_not(psd_lane_take_done(&woken.lane));
	for (unsigned i = 1; i <= N_JOBS; i++) {
		uint64_t n_written;

		psd_lane_start(&woken.lane, count, &woken.n_done);
		cr_assert(is_written(woken.wake_fd, LONG_MS));
		cr_assert_eq(read(woken.wake_fd, &n_written, sizeof(n_written)), (ssize_t)sizeof(n_written));
		cr_assert(psd_lane_take_done(&woken.lane));
		cr_assert_eq(woken.n_done, i);
		cr_assert_not(psd_lane_take_done(&woken.lane), "told once");
	}
	close_lane(&woken);
}

/* The end may be noticed before the eventfd says so, which it then does later: a wake-up for nothing. */
Test(lane, the_end_may_be_noticed_without_the_eventfd)
{
	struct woken woken;

	open_lane(&woken);
	for (unsigned i = 1; i <= N_JOBS; i++) {
		psd_lane_start(&woken.lane, count, &woken.n_done);
		while (!psd_lane_take_done(&woken.lane))
			;
		cr_assert_eq(woken.n_done, i);
	}
	cr_expect(is_written(woken.wake_fd, LONG_MS));
	close_lane(&woken);
}

Test(lane, without_an_eventfd_the_thread_that_starts_a_job_waits_for_it)
{
	unsigned n_done = 0;
	struct psd_lane lane;
	struct psd_error err;

	cr_assert_eq(psd_lane_open(&lane, -1, NULL, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 1; i <= N_JOBS; i++) {
		psd_lane_run(&lane, count, &n_done);
		cr_assert_eq(n_done, i);
	}
	psd_lane_close(&lane);
}

/* Progress of each stage, and the limit of the first. */
struct staged {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned n_begun, n_finished;
};

static void begin_staged(void *context)
{
	struct staged *staged = context;

	pthread_mutex_lock(&staged->mutex);
	staged->n_begun++;
	pthread_cond_broadcast(&staged->changed);
	pthread_mutex_unlock(&staged->mutex);
}

/* Not before all jobs have begun, which takes a first stage that does not wait for the second. */
static void finish_staged(void *context)
{
	struct staged *staged = context;

	pthread_mutex_lock(&staged->mutex);
	while (staged->n_begun < PSD_LANE_JOBS)
		pthread_cond_wait(&staged->changed, &staged->mutex);
	staged->n_finished++;
	pthread_mutex_unlock(&staged->mutex);
}

Test(lane, a_first_stage_goes_on_while_the_second_waits, .timeout = 60)
{
	struct staged staged = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
	struct psd_lane lane;
	struct psd_error err;

	cr_assert_eq(psd_lane_open(&lane, -1, finish_staged, &err), PSD_OK, "%s", err.text);
	cr_expect_not(psd_lane_is_busy(&lane));
	for (unsigned i = 0; i < PSD_LANE_JOBS; i++)
		psd_lane_start(&lane, begin_staged, &staged);
	cr_expect(psd_lane_is_busy(&lane));
	psd_lane_wait(&lane);
	cr_expect_not(psd_lane_is_busy(&lane));
	cr_expect_eq(staged.n_finished, PSD_LANE_JOBS);
	cr_expect_not(psd_lane_take_done(&lane), "notice was taken");
	psd_lane_close(&lane);
}

Test(lane, started_jobs_are_done_before_it_closes)
{
	unsigned n_done = 0;
	struct psd_lane lane;
	struct psd_error err;

	cr_assert_eq(psd_lane_open(&lane, -1, NULL, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 0; i < PSD_LANE_JOBS; i++)
		psd_lane_start(&lane, count, &n_done);
	psd_lane_close(&lane);
	cr_expect_eq(n_done, PSD_LANE_JOBS);
}

static void spin(void *context)
{
	const double until_sec = psd_machine_own_sec() + *(const double *)context;

	while (psd_machine_own_sec() < until_sec)
		;
}

Test(lane, processor_time_is_that_of_its_thread_alone)
{
	double sec = BUSY_SEC, idle_sec;
	struct woken woken;

	open_lane(&woken);
	spin(&sec);
	idle_sec = psd_lane_cpu_sec(&woken.lane);
	cr_expect_lt(idle_sec, sec, "%g s while only this thread had something to do", idle_sec);
	psd_lane_run(&woken.lane, spin, &sec);
	cr_expect_geq(psd_lane_cpu_sec(&woken.lane) - idle_sec, sec);
	close_lane(&woken);
}
