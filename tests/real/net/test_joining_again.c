/* Three hosts join on loopback, each in a thread, and may have to join again: one leaves, is late, or has been
 * restarted. The test plays host 1 where that does things that no host of today would do. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/net/frame.h"
#include "real/net/wire.h"
#include "tests/real/net/joining_hosts.h"

TestSuite(joining_again, .timeout = 60);

/* All in the attempt of that number. */
static void open_cluster(struct cluster *cluster, uint32_t number)
{
	open_hosts(cluster);
	for (unsigned h = 0; h < HOSTS; h++) {
		struct host *host = &cluster->hosts[h];

		host->attempt.number = number;
		host->options.attempt = &host->attempt;
	}
}

/* As psd-run does it: with an earlier checkpoint it comes again. */
static void *join(void *context)
{
	struct host *host = context;
	struct psd_mesh_clock clock;
	uint32_t first_iteration;

	do {
		first_iteration = host->attempt.first_iteration;
		host->options.listener = fcntl(host->listener, F_DUPFD_CLOEXEC, 0);
		host->status = psd_mesh_open(&host->options, host->fds, &clock, &host->err);
		if (host->status)
			host->attempt.number = host->attempt.next_number;
		host->n_tries++;
	} while (host->status == PSD_ELOST && host->attempt.first_iteration < first_iteration);
	return NULL;
}

static void start(struct cluster *cluster, unsigned host)
{
	cr_assert_eq(pthread_create(&cluster->hosts[host].thread, NULL, join, &cluster->hosts[host]), 0);
}

/* All have joined, in the same attempt. */
static void expect_joined(struct cluster *cluster, uint32_t number)
{
	for (unsigned h = 0; h < HOSTS; h++) {
		struct host *host = &cluster->hosts[h];

		await_host(host);
		cr_expect_eq(host->status, PSD_OK, "host %u: %s", h, host->err.text);
		cr_expect_eq(host->attempt.number, number, "host %u: %u", h, host->attempt.number);
		close(host->listener);
	}
}

/* ---- host 1, as the test plays it ---- */

static int greet(const struct cluster *cluster, uint32_t connection, uint32_t attempt)
{
	const struct psd_wire_hello hello = {.host = 1,
					     .n_hosts = HOSTS,
					     .connection = connection,
					     .terms_bytes = connection ? 0 : strlen(TERMS),
					     .attempt = attempt};
	const int fd = connect_to(cluster, 0);
	struct psd_error err;

	cr_assert_eq(psd_frame_send("host 0", fd, NULL, PSD_WIRE_HELLO, &hello, &err), PSD_OK, "%s", err.text);
	if (hello.terms_bytes)
		cr_assert_eq(send(fd, TERMS, strlen(TERMS), MSG_NOSIGNAL), (ssize_t)strlen(TERMS));
	return fd;
}

/* With which host 0 answers. */
static uint32_t read_attempt(int fd, uint32_t connection)
{
	union psd_wire_payload payload;
	char terms[sizeof(TERMS)] = "";
	struct psd_error err;

	cr_assert_eq(
		psd_frame_read("host 0", fd, NULL, PSD_WIRE_HELLO, &payload, psd_socket_now_sec() + LONG_SEC, &err),
		PSD_OK, "%s", err.text);
	if (connection == 0)
		cr_assert_eq(psd_frame_read_all("host 0", fd, NULL, (uint8_t *)terms, strlen(TERMS),
						psd_socket_now_sec() + LONG_SEC, &err),
			     PSD_OK, "%s", err.text);
	return payload.hello.attempt;
}

/* Until the connection ends: the bytes that still come. */
static size_t read_rest(int fd)
{
	size_t n_bytes = 0;
	uint8_t byte;
	ssize_t n_read;

	for (;;) {
		cr_assert(psd_socket_await(fd, psd_socket_now_sec() + LONG_SEC));
		n_read = recv(fd, &byte, 1, 0);
		if (n_read == 0 || (n_read < 0 && errno != EAGAIN))
			break;
		n_bytes += n_read > 0;
	}
	close(fd);
	return n_bytes;
}

/* ---- hosts that leave ---- */

Test(joining_again, a_host_that_leaves_is_waited_for)
{
	static struct cluster cluster;
	int fd;

	open_cluster(&cluster, 4);
	start(&cluster, 0);
	start(&cluster, 2);
	fd = greet(&cluster, 0, 4);
	cr_expect_eq(read_attempt(fd, 0), 4);
	close(fd);
	start(&cluster, 1);
	expect_joined(&cluster, 5);
	cr_expect(strstr(cluster.hosts[0].remarks, "worker 1 at 127.0.0.1:") &&
			  strstr(cluster.hosts[0].remarks,
				 " closed the connection while hosts were joining: joining again\n"),
		  "%s", cluster.hosts[0].remarks);
}

/* Its machine has lost power, for example: the only sign of its end is that it comes again. */
Test(joining_again, a_new_process_takes_over)
{
	static struct cluster cluster;
	int fd;

	open_cluster(&cluster, 4);
	start(&cluster, 0);
	start(&cluster, 2);
	fd = greet(&cluster, 0, 4);
	cr_expect_eq(read_attempt(fd, 0), 4);
	start(&cluster, 1);
	expect_joined(&cluster, 5);
	cr_expect(strstr(cluster.hosts[0].remarks, " was started again: joining again\n"), "%s",
		  cluster.hosts[0].remarks);
	close(fd);
}

/* Host 0 is connected with both and compares clocks, while host 2 still waits for host 1. */
Test(joining_again, a_host_that_leaves_while_clocks_are_compared_is_waited_for)
{
	static struct cluster cluster;
	union psd_wire_payload question;
	struct psd_error err;
	int fds[LINES];

	open_cluster(&cluster, 4);
	start(&cluster, 0);
	start(&cluster, 2);
	for (uint32_t line = 0; line < LINES; line++) {
		fds[line] = greet(&cluster, line, 4);
		cr_expect_eq(read_attempt(fds[line], line), 4);
	}
	cr_assert_eq(psd_frame_read("host 0", fds[0], NULL, PSD_WIRE_CLOCK, &question, psd_socket_now_sec() + LONG_SEC,
				    &err),
		     PSD_OK, "%s", err.text);
	for (uint32_t line = 0; line < LINES; line++)
		close(fds[line]);
	start(&cluster, 1);
	expect_joined(&cluster, 5);
}

/* Connections that are added to others of an attempt do not outlive it. */
Test(joining_again, an_addition_fails_with_its_attempt)
{
	static struct cluster cluster;
	struct host *host = &cluster.hosts[0];
	int fd;

	open_cluster(&cluster, 4);
	host->options.is_addition = true;
	start(&cluster, 0);
	fd = greet(&cluster, 0, 4);
	cr_expect_eq(read_attempt(fd, 0), 4);
	close(fd);
	pthread_join(host->thread, NULL);
	cr_expect_eq(host->status, PSD_ELOST);
	cr_expect_eq(host->attempt.number, 5);
	for (unsigned h = 0; h < HOSTS; h++)
		close(cluster.hosts[h].listener);
}

/* ---- hosts of another attempt ---- */

Test(joining_again, a_restarted_host_joins_those_that_are_left)
{
	for (unsigned fresh = 0; fresh < HOSTS; fresh++) {
		static struct cluster cluster;

		open_cluster(&cluster, 3);
		cluster.hosts[fresh].attempt.number = 0;
		for (unsigned h = 0; h < HOSTS; h++)
			start(&cluster, h);
		expect_joined(&cluster, 3);
	}
}

/* It hears the number of this attempt, and replaces no host; on a second connection it hears nothing. */
Test(joining_again, a_late_host_does_not_enter)
{
	static struct cluster cluster;
	int first, second;

	open_cluster(&cluster, 4);
	start(&cluster, 0);
	start(&cluster, 2);
	first = greet(&cluster, 0, 3);
	cr_expect_eq(read_attempt(first, 0), 4);
	second = greet(&cluster, 1, 3);
	cr_expect_eq(read_rest(second), 0);
	start(&cluster, 1);
	expect_joined(&cluster, 4);
	close(first);
}

/* While a host of this attempt has joined by its first connection, its second cannot be one of an earlier attempt. */
Test(joining_again, lines_of_two_attempts_do_not_mix)
{
	static struct cluster cluster;
	int fds[3];

	open_cluster(&cluster, 4);
	start(&cluster, 0);
	fds[0] = greet(&cluster, 0, 4);
	cr_expect_eq(read_attempt(fds[0], 0), 4);
	fds[1] = greet(&cluster, 1, 3);
	cr_expect_eq(read_rest(fds[1]), 0);
	fds[2] = greet(&cluster, 0, 5);
	cr_expect_eq(read_rest(fds[0]), PSD_WIRE_HEAD_BYTES + PSD_WIRE_FAILED_BYTES, "and says why");
	close(fds[2]);
	start(&cluster, 1);
	start(&cluster, 2);
	expect_joined(&cluster, 5);
}

/* ---- hosts with checkpoints of other iterations ---- */

Test(joining_again, all_begin_where_all_can)
{
	for (unsigned earliest = 0; earliest < HOSTS; earliest++) {
		static struct cluster cluster;

		open_cluster(&cluster, 0);
		for (unsigned h = 0; h < HOSTS; h++)
			cluster.hosts[h].attempt.first_iteration = h == earliest ? 4 : 8;
		for (unsigned h = 0; h < HOSTS; h++)
			start(&cluster, h);
		for (unsigned h = 0; h < HOSTS; h++)
			await_host(&cluster.hosts[h]);
		for (unsigned h = 0; h < HOSTS; h++) {
			struct host *host = &cluster.hosts[h];

			cr_expect_eq(host->status, PSD_OK, "host %u: %s", h, host->err.text);
			cr_expect_eq(host->attempt.first_iteration, 4, "host %u", h);
			cr_expect_eq(host->attempt.number, cluster.hosts[0].attempt.number, "host %u", h);
			cr_expect_eq(host->n_tries, h == earliest ? 1 : 2, "host %u tried %u times", h, host->n_tries);
			close(host->listener);
		}
	}
}
