/* A thread that moves chunks: what becomes of a job that it cannot do. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "real/net/io_thread.h"

static ssize_t receive_nothing(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	(void)carrier, (void)segments, (void)n_segments;
	errno = EAGAIN;
	return -1;
}

/* epoll refuses files: EPERM. It would have to wait for one, since nothing comes at once. */
Test(io_thread, a_job_that_cannot_be_watched_is_returned)
{
	static const struct psd_transport nothing = {.receive = receive_nothing};
	uint8_t payload[16];
	const struct psd_destination destination = {.segments = {{payload, sizeof(payload)}}, .n_segments = 1};
	struct psd_chunk_receiver receiver = {.has_head = true};
	struct psd_io_job job = {
		.carrier = {.transport = &nothing, .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)},
		.in = &receiver,
	};
	struct pollfd woken = {.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};
	struct psd_io_thread *io_thread;
	struct psd_error err;

	cr_assert(job.carrier.fd >= 0 && woken.fd >= 0);
	psd_chunk_receiver_open(&receiver, &destination);
	cr_assert_eq(psd_io_thread_open(&io_thread, 1, 0, 1, woken.fd, &err), PSD_OK, "%s", err.text);
	psd_io_thread_lend(io_thread, &job);
	cr_assert_eq(poll(&woken, 1, 60000), 1, "it waits for ever");
	cr_assert_eq(psd_io_thread_take_back(io_thread), &job);
	cr_expect_eq(job.state, PSD_IO_JOB_IDLE);
	cr_expect_eq(job.error_number, EPERM);
	cr_expect_not(job.is_complete);
	psd_io_thread_close(io_thread);
	close(job.carrier.fd);
	close(woken.fd);
}
