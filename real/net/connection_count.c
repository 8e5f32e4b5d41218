#define _GNU_SOURCE
#include "real/net/connection_count.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "real/net/frame.h"
#include "real/net/socket.h"

enum { BLOCK_BYTES = 1 << 18 };

#define GOOD_RATIO 0.9 /* share of the best rate: a smaller gain does not pay for more connections */

static enum psd_status send_rates(const struct psd_mesh_options *mesh, unsigned host, int fd,
				  const struct psd_wire_rates *rates, struct psd_error *err)
{
	char name[PSD_MESH_NAME_MAX];

	return psd_frame_send(psd_mesh_name(mesh->layout, mesh->hosts, host, name), fd, mesh->secret, PSD_WIRE_RATES,
			      rates, err);
}

static enum psd_status read_rates(const struct psd_mesh_options *mesh, unsigned host, int fd, double until_sec,
				  struct psd_wire_rates *rates, struct psd_error *err)
{
	union psd_wire_payload payload = {.rates = *rates};
	char name[PSD_MESH_NAME_MAX];

	PSD_TRY(psd_frame_read(psd_mesh_name(mesh->layout, mesh->hosts, host, name), fd, mesh->secret, PSD_WIRE_RATES,
			       &payload, until_sec, err));
	*rates = payload.rates;
	return PSD_OK;
}

/* Host 0 combines all hosts' values and returns the result to them: the smallest number, the sum of rates. n_fds:
 * connections per host in fds. */
static enum psd_status gather(const struct psd_mesh_options *mesh, const int fds[], unsigned n_fds, double until_sec,
			      struct psd_wire_rates *rates, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(mesh->layout);

	if (mesh->self > 0) {
		PSD_TRY(send_rates(mesh, 0, fds[0], rates, err));
		return read_rates(mesh, 0, fds[0], until_sec, rates, err);
	}
	for (unsigned h = 1; h < n_hosts; h++) {
		struct psd_wire_rates received = *rates;

		PSD_TRY(read_rates(mesh, h, fds[(size_t)h * n_fds], until_sec, &received, err));
		rates->number = received.number < rates->number ? received.number : rates->number;
		for (unsigned i = 0; i < PSD_WIRE_TRIALS; i++)
			rates->bps[i] += received.bps[i];
	}
	for (unsigned h = 1; h < n_hosts; h++)
		PSD_TRY(send_rates(mesh, h, fds[(size_t)h * n_fds], rates, err));
	return PSD_OK;
}

enum psd_status psd_connection_count_agree(const struct psd_mesh_options *mesh, const int fds[], bool wants_several,
					   double until_sec, bool *is_tried, struct psd_error *err)
{
	struct psd_wire_rates rates = {.number = wants_several ? PSD_CONNECTIONS_MOST : 1};

	PSD_TRY(gather(mesh, fds, 1, until_sec, &rates, err));
	*is_tried = rates.number > 1;
	return PSD_OK;
}

/* ---- the thread of one connection ---- */

/* Sends and receives blocks. The first byte of a block says whether it is the last. */
struct trial {
	int out_fd, in_fd;
	double end_sec, until_sec; /* start of the last block; deadline */
	uint8_t *blocks;	   /* one to send, one to receive */
	uint64_t sent_bytes, received_bytes;
	bool is_last_out, is_last_in, is_over_out, is_over_in;
	int error_number;
};

static bool send_some(struct trial *trial)
{
	const size_t at = (size_t)(trial->sent_bytes % BLOCK_BYTES);

	if (at == 0) {
		trial->is_last_out = psd_socket_now_sec() >= trial->end_sec;
		trial->blocks[0] = trial->is_last_out;
	}
	const ssize_t n_sent = send(trial->out_fd, trial->blocks + at, BLOCK_BYTES - at, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n_sent < 0)
		return errno == EAGAIN || errno == EINTR;
	trial->sent_bytes += (uint64_t)n_sent;
	trial->is_over_out = trial->is_last_out && trial->sent_bytes % BLOCK_BYTES == 0;
	return true;
}

static bool receive_some(struct trial *trial)
{
	const size_t at = (size_t)(trial->received_bytes % BLOCK_BYTES);
	uint8_t *block = trial->blocks + BLOCK_BYTES;
	const ssize_t n_read = recv(trial->in_fd, block + at, BLOCK_BYTES - at, MSG_DONTWAIT);

	if (n_read < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n_read == 0) {
		errno = ECONNRESET;
		return false;
	}
	trial->is_last_in = at == 0 ? block[0] != 0 : trial->is_last_in;
	trial->received_bytes += (uint64_t)n_read;
	trial->is_over_in = trial->is_last_in && trial->received_bytes % BLOCK_BYTES == 0;
	return true;
}

static void *exchange(void *context)
{
	struct trial *trial = context;

	while (!trial->error_number && (!trial->is_over_out || !trial->is_over_in)) {
		struct pollfd polled[] = {
			{.fd = trial->is_over_out ? -1 : trial->out_fd, .events = POLLOUT},
			{.fd = trial->is_over_in ? -1 : trial->in_fd, .events = POLLIN},
		};
		const int left_ms = (int)(1e3 * fmin(fmax(trial->until_sec - psd_socket_now_sec(), 0.0), 1e6)) + 1;
		const int n_ready = poll(polled, 2, left_ms);

		if (n_ready < 0 && errno != EINTR)
			trial->error_number = errno;
		else if (n_ready == 0 || psd_socket_now_sec() > trial->until_sec)
			trial->error_number = ETIMEDOUT;
		else if (n_ready > 0 &&
			 ((polled[0].revents && !send_some(trial)) || (polled[1].revents && !receive_some(trial))))
			trial->error_number = errno;
	}
	return NULL;
}

/* ---- trials ---- */

/* Runs all trials at once, the first in this thread. Returns an errno, or 0 with the rate received. */
static int run_trials(struct trial trials[], unsigned n_trials, double *bps)
{
	pthread_t threads[PSD_CONNECTIONS_MOST];
	const double start_sec = psd_socket_now_sec();
	uint64_t received_bytes = 0;
	unsigned n_started = 1;
	int error = 0;

	while (n_started < n_trials && !error) {
		error = pthread_create(&threads[n_started], NULL, exchange, &trials[n_started]);
		n_started += !error;
	}
	if (!error)
		(void)exchange(&trials[0]);
	for (unsigned i = 1; i < n_started; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < n_trials; i++) {
		error = error ? error : trials[i].error_number;
		received_bytes += trials[i].received_bytes;
	}
	*bps = 8.0 * (double)received_bytes / (psd_socket_now_sec() - start_sec);
	return error;
}

static enum psd_status try_number(const struct psd_mesh_options *mesh, const int fds[], unsigned number, double try_sec,
				  double until_sec, double *bps, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(mesh->layout);
	const unsigned hop = mesh->layout->workers_per_node; /* the next node: inside a node memory hides the links */
	const unsigned next = (mesh->self + hop) % n_hosts, before = (mesh->self + n_hosts - hop) % n_hosts;
	uint8_t *blocks = calloc(number, 2 * (size_t)BLOCK_BYTES);
	struct trial trials[PSD_CONNECTIONS_MOST];

	if (!blocks)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for trying connections");
	for (unsigned i = 0; i < number; i++)
		trials[i] = (struct trial){
			.out_fd = fds[next * PSD_CONNECTIONS_MOST + i],
			.in_fd = fds[before * PSD_CONNECTIONS_MOST + i],
			.end_sec = psd_socket_now_sec() + try_sec,
			.until_sec = until_sec,
			.blocks = blocks + 2 * (size_t)BLOCK_BYTES * i,
		};
	const int error = run_trials(trials, number, bps);
	free(blocks);
	return error ? psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "cannot try %u connections between two hosts: %s",
				     number, strerror(error))
		     : PSD_OK;
}

unsigned psd_connection_count_best(const double bps[PSD_WIRE_TRIALS])
{
	double best_bps = 0.0;
	unsigned exponent = 0;

	for (unsigned i = 0; i < PSD_WIRE_TRIALS; i++)
		best_bps = fmax(best_bps, bps[i]);
	while (bps[exponent] < GOOD_RATIO * best_bps)
		exponent++;
	return exponent;
}

enum psd_status psd_connection_count_try(const struct psd_mesh_options *mesh, const int fds[], double try_sec,
					 double until_sec, unsigned *n_connections, struct psd_wire_rates *tried,
					 struct psd_error *err)
{
	struct psd_wire_rates rates = {.number = PSD_CONNECTIONS_MOST};

	for (unsigned i = 0; i < PSD_WIRE_TRIALS; i++)
		PSD_TRY(try_number(mesh, fds, 1u << i, try_sec, until_sec, &rates.bps[i], err));
	PSD_TRY(gather(mesh, fds, PSD_CONNECTIONS_MOST, until_sec, &rates, err));
	*n_connections = 1u << psd_connection_count_best(rates.bps); /* equal on all hosts, as the numbers are */
	*tried = rates;
	return PSD_OK;
}
