/* Throughput of the emulated cluster's links: TCP payload per second from `senders` nodes to one, and the round trip of
 * one byte on the idle link and beside the stream. Processor time is given for the two ends and for the whole machine,
 * which includes timers and all other processes: measure on a quiet machine. One line per case, the best of three
 * attempts. A shaped rate up to 10 Gbit/s is reached when TCP gets 93 to 101 % of the rate less its headers. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "tests/real/node_processes.h"
#include "tests/real/waiting_socket.h"

#define STREAM_PORT	     4711
#define ECHO_PORT	     4712
#define WARM_UP_SEC	     0.3
#define COUNT_SEC	     1.0
#define LIMIT_SEC	     10.0
#define MAX_PINGS	     2000
#define CHUNK_BYTES	     ((size_t)1 << 20)
#define GOOD_RATIO	     0.99 /* no need to try again */
#define MIN_RATIO	     0.93
#define MAX_RATIO	     1.01 /* the burst, over COUNT_SEC */
#define MAX_ATTEMPTS	     3
#define MAX_SENDERS	     8
#define FIRST_STREAM_PROCESS 2U /* after the two of the ping */

struct result {
	double goodput_bps;
	double round_trip_sec;	/* median */
	double machine_cpu_sec; /* while counting */
	uint64_t counted_bytes, all_bytes;
	double ends_cpu_sec; /* for all_bytes */
};

struct job {
	struct psd_emulation_options options;
	unsigned n_senders;
	double ping_sec;	/* how long */
	struct result *results; /* shared memory */
};

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Processor seconds of everything since the start of the machine. */
static double machine_cpu_sec(void)
{
	unsigned long long user, nice, kernel, idle, io_wait, hard, soft;
	FILE *const file = fopen("/proc/stat", "re");
	int n_read = 0;

	if (file) {
		n_read = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &kernel, &idle, &io_wait,
				&hard, &soft);
		fclose(file);
	}
	return n_read == 7 ? (double)(user + nice + kernel + hard + soft) / (double)sysconf(_SC_CLK_TCK) : 0;
}

static bool is_readable(int fd, double until_sec)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	const double left_sec = until_sec - now_sec();

	return poll(&polled, 1, left_sec > 0 ? (int)(1000 * left_sec) + 1 : 0) > 0;
}

static int complain(const struct psd_error *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

static int connect_to_first(uint16_t port, int *fd)
{
	char address[PSD_EMULATION_ADDRESS_MAX];

	*fd = connect_within(psd_emulation_address(0, address), port, LIMIT_SEC, &(struct psd_socket_options){0});
	return *fd < 0;
}

static int send_stream(void *context, unsigned node)
{
	char *const chunk = calloc(1, CHUNK_BYTES);
	const double until_sec = now_sec() + LIMIT_SEC;
	int fd;

	(void)context;
	(void)node;
	if (!chunk || connect_to_first(STREAM_PORT, &fd))
		return 1;
	while (now_sec() < until_sec) {
		struct pollfd polled = {.fd = fd, .events = POLLOUT};

		if (send(fd, chunk, CHUNK_BYTES, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
			return 0; /* the receiver has seen enough */
		(void)poll(&polled, 1, 100);
	}
	return 1;
}

/* Reads what is there, at most one chunk. */
static uint64_t read_some(struct pollfd *polls, unsigned n_polls, char *chunk)
{
	uint64_t bytes = 0;

	(void)poll(polls, n_polls, 100);
	for (unsigned i = 0; i < n_polls; i++) {
		const ssize_t n_read = polls[i].revents ? recv(polls[i].fd, chunk, CHUNK_BYTES, MSG_DONTWAIT) : 0;

		bytes += n_read > 0 ? (uint64_t)n_read : 0;
	}
	return bytes;
}

static int receive_streams(void *context, unsigned node)
{
	const struct job *const job = context;
	char *const chunk = calloc(1, CHUNK_BYTES);
	struct pollfd polls[MAX_SENDERS];
	struct psd_error err;
	uint16_t port;
	int listener;
	double start_sec, cpu_sec;
	uint64_t early_bytes = 0, bytes = 0;

	(void)node;
	if (!chunk ||
	    psd_socket_listen(NULL, STREAM_PORT, &(struct psd_socket_options){0}, &listener, &port, &err) != PSD_OK)
		return complain(&err);
	for (unsigned i = 0; i < job->n_senders; i++) {
		polls[i] = (struct pollfd){.fd = accept_within(listener, LIMIT_SEC), .events = POLLIN};
		if (polls[i].fd < 0)
			return 1;
	}
	for (start_sec = now_sec(); now_sec() < start_sec + WARM_UP_SEC;)
		early_bytes += read_some(polls, job->n_senders, chunk);
	cpu_sec = machine_cpu_sec();
	for (start_sec = now_sec(); now_sec() < start_sec + COUNT_SEC;)
		bytes += read_some(polls, job->n_senders, chunk);
	job->results->goodput_bps = 8 * (double)bytes / (now_sec() - start_sec);
	job->results->machine_cpu_sec = machine_cpu_sec() - cpu_sec;
	job->results->counted_bytes = bytes;
	job->results->all_bytes = early_bytes + bytes;
	return 0;
}

static int echo(void *context, unsigned node)
{
	struct psd_error err;
	uint16_t port;
	int listener, fd;
	char byte;

	(void)context;
	(void)node;
	if (psd_socket_listen(NULL, ECHO_PORT, &(struct psd_socket_options){0}, &listener, &port, &err) != PSD_OK)
		return complain(&err);
	fd = accept_within(listener, LIMIT_SEC);
	while (fd >= 0 && is_readable(fd, now_sec() + LIMIT_SEC))
		if (recv(fd, &byte, 1, 0) != 1 || send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
			return 0;
	return 1;
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int ping(void *context, unsigned node)
{
	const struct job *const job = context;
	double round_trips_sec[MAX_PINGS];
	const double until_sec = now_sec() + job->ping_sec;
	unsigned n_pings = 0;
	char byte = 1;
	int fd;

	(void)node;
	if (connect_to_first(ECHO_PORT, &fd))
		return 1;
	while (n_pings < MAX_PINGS && (!n_pings || now_sec() < until_sec)) {
		const double start_sec = now_sec();

		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || !is_readable(fd, start_sec + LIMIT_SEC) ||
		    recv(fd, &byte, 1, 0) != 1)
			return 1;
		round_trips_sec[n_pings++] = now_sec() - start_sec;
	}
	qsort(round_trips_sec, n_pings, sizeof(*round_trips_sec), compare_doubles);
	job->results->round_trip_sec = round_trips_sec[n_pings / 2];
	return 0;
}

/* Runs the processes to their end; 0 if all went well. */
static int run(struct job *job, bool is_streaming)
{
	struct psd_emulation *emulation;
	struct node_end end;
	struct psd_error err;
	int n_failed = 0;

	*job->results = (struct result){0};
	if (psd_emulation_open(&job->options, &emulation, &err))
		return complain(&err);
	(void)start_in_node(emulation, 0, echo, job);
	(void)start_in_node(emulation, 1, ping, job);
	if (is_streaming)
		(void)start_in_node(emulation, 0, receive_streams, job);
	for (unsigned i = 0; is_streaming && i < job->n_senders; i++)
		(void)start_in_node(emulation, 1 + i, send_stream, job);
	for (unsigned n_left = n_node_processes; n_left > 0 && wait_in_nodes(2 * LIMIT_SEC, &end); n_left--) {
		n_failed += end.was_killed || end.exit_or_signal;
		job->results->ends_cpu_sec += end.process >= FIRST_STREAM_PROCESS ? end.cpu_sec : 0;
	}
	end_in_nodes();
	psd_emulation_close(emulation);
	return n_failed;
}

/* Returns 0 when the processes did what they should, whether or not the rate is met. */
static int measure(double rate_bps, uint32_t mtu_bytes, unsigned n_senders, struct result *results)
{
	struct job job = {.options = {.n_nodes = 1 + n_senders,
				      .has_rate = rate_bps > 0,
				      .rate_bps = rate_bps,
				      .has_mtu = true,
				      .mtu_bytes = mtu_bytes},
			  .n_senders = n_senders,
			  .results = results};
	const double payload_bps = rate_bps * psd_emulation_payload_ratio(mtu_bytes);
	struct result best = {0};
	double idle_sec, ratio;

	job.ping_sec = 0.2;
	if (run(&job, false))
		return 1;
	idle_sec = results->round_trip_sec;
	job.ping_sec = WARM_UP_SEC + COUNT_SEC;
	for (unsigned i = 0; i < MAX_ATTEMPTS; i++) {
		if (run(&job, true))
			return 1;
		if (results->goodput_bps > best.goodput_bps)
			best = *results;
		if (rate_bps > 0 && best.goodput_bps >= GOOD_RATIO * payload_bps)
			break;
	}
	ratio = best.goodput_bps / payload_bps;
	printf("%.0f,%u,%u,%.0f,", rate_bps, mtu_bytes, n_senders, best.goodput_bps);
	if (rate_bps > 0)
		printf("%.4f,%.4f", best.goodput_bps / rate_bps, ratio);
	else
		printf(",");
	printf(",%.6f,%.6f,%.3f,%.3f,%s\n", idle_sec, best.round_trip_sec,
	       best.ends_cpu_sec / (1e-9 * (double)best.all_bytes),
	       best.machine_cpu_sec / (1e-9 * (double)best.counted_bytes),
	       rate_bps <= 0 || rate_bps > 10e9		  ? ""
	       : ratio >= MIN_RATIO && ratio <= MAX_RATIO ? "yes"
							  : "no");
	fflush(stdout);
	return 0;
}

int main(void)
{
	static const double rates_bps[] = {100e6, 1e9, 5e9, 10e9, 0};
	struct result *const results =
		mmap(NULL, sizeof(*results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int n_failed = 0;

	if (results == MAP_FAILED)
		return 1;
	printf("rate_bps,mtu_bytes,senders,goodput_bps,goodput_per_rate_ratio,goodput_per_payload_rate_ratio,idle_"
	       "round_trip_sec,loaded_round_trip_sec,ends_cpu_sec_per_GB,machine_cpu_sec_per_GB,is_met\n");
	for (unsigned i = 0; i < sizeof(rates_bps) / sizeof(*rates_bps); i++) {
		n_failed += measure(rates_bps[i], PSD_EMULATION_DEFAULT_MTU, 1, results);
		n_failed += measure(rates_bps[i], 9000, 1, results);
	}
	n_failed += measure(1e9, PSD_EMULATION_DEFAULT_MTU, 3, results);
	n_failed += measure(10e9, PSD_EMULATION_DEFAULT_MTU, 3, results);
	return n_failed != 0;
}
