/* Opening, timer and end of connections. Each connection is two small state machines, a sender and a receiver. */
#define _GNU_SOURCE
#include "real/net/connections_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "real/net/socket.h"

enum {
	MIN_LOW_WATER_BYTES = 1 << 14,
	MAX_LOW_WATER_BYTES = 1 << 18,
	/* less than elsewhere, so that a message counts as sent only when the link has nearly all of it */
	CLOSE_UNSENT_BYTES = 1 << 16,
	IO_JOB_BYTES = 1 << 16, /* a smaller chunk is moved before an I/O thread has woken up */
};

/* Shortest time on the link that is worth a wake-up: a link delivers a few kilobytes at a time, and a wake-up for each
 * costs more than its bytes. */
#define LOW_WATER_SEC 2e-3

#define LATEST_SEC 1e9 /* longer than any machine runs */

static unsigned connection_number(const struct psd_connections *connections, const struct psd_connection *connection)
{
	return (unsigned)(connection - connections->all);
}

enum psd_status psd_connections_watch(struct psd_connections *connections, struct psd_connection *connection,
				      struct psd_error *err)
{
	struct psd_carrier *carrier = &connection->carrier;
	const uint32_t events = carrier->fd < 0 ? 0
						: carrier->transport->events(carrier, psd_connection_reads(connection),
									     psd_connection_sends(connection));
	struct epoll_event event = {.events = events, .data.u32 = connection_number(connections, connection)};

	if (carrier->fd < 0 || events == connection->events)
		return PSD_OK;
	connection->events = events;
	if (epoll_ctl(connections->epoll_fd, EPOLL_CTL_MOD, carrier->fd, &event) < 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot watch a connection: %s", strerror(errno));
	return PSD_OK;
}

/* ---- opening ---- */

static bool add_to_epoll(struct psd_connections *connections, int fd, uint32_t number)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

	return epoll_ctl(connections->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool watch_all(struct psd_connections *connections)
{
	connections->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	connections->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (connections->epoll_fd < 0 || connections->timer_fd < 0 ||
	    !add_to_epoll(connections, connections->wake_fd, PSD_CONNECTIONS_WAKE) ||
	    !add_to_epoll(connections, connections->timer_fd, PSD_CONNECTIONS_TIMER))
		return false;
	for (unsigned i = 0; i < connections->n_all; i++) {
		connections->all[i].events = EPOLLIN;
		if (connections->all[i].carrier.fd >= 0 &&
		    !add_to_epoll(connections, connections->all[i].carrier.fd, i))
			return false;
	}
	return true;
}

static uint64_t low_water_of(double link_bps)
{
	const double bytes = fmin(link_bps / 8 * LOW_WATER_SEC, MAX_LOW_WATER_BYTES);

	return bytes < MIN_LOW_WATER_BYTES ? UINT64_MAX : (uint64_t)bytes;
}

static bool fill(struct psd_connections *connections, const struct psd_connections_options *options)
{
	connections->all = calloc(connections->n_all + 1u, sizeof(*connections->all));
	connections->peers = calloc(connections->n_peers + 1u, sizeof(*connections->peers));
	connections->scratch = aligned_alloc(64, PSD_CHUNK_RECEIVER_SCRATCH_BYTES);
	if (!connections->all || !connections->peers || !connections->scratch)
		return false;
	for (unsigned p = 0; p < connections->n_peers; p++)
		connections->peers[p].heard_sec = psd_socket_now_sec();
	for (unsigned i = 0; i < connections->n_all; i++) {
		connections->all[i].peer = i / connections->n_connections;
		connections->all[i].carrier = options->carriers[i];
		connections->all[i].sending.number = connections->all[i].reading.number = i;
		connections->all[i].sending.slot = connections->all[i].reading.slot = i / connections->n_connections;
		if (options->carriers[i].fd >= 0)
			options->carriers[i].transport->limit_unsent(
				&connections->all[i].carrier,
				options->is_close_to_link ? CLOSE_UNSENT_BYTES : PSD_CONNECTIONS_UNSENT_BYTES);
	}
	connections->low_water_bytes = low_water_of(options->link_bps);
	return true;
}

struct psd_io_thread *psd_connections_io_thread(const struct psd_connections *connections,
						const struct psd_connection *connection, uint64_t bytes)
{
	return connections->io_threads && connection->carrier.transport->is_for_threads && bytes >= IO_JOB_BYTES
		       ? connections
				 ->io_threads[connection_number(connections, connection) % connections->n_connections]
		       : NULL;
}

static enum psd_status open_io_threads(struct psd_connections *connections,
				       const struct psd_connections_options *options, struct psd_error *err)
{
	if (!options->has_threads)
		return PSD_OK;
	connections->io_threads = calloc(connections->n_connections, sizeof(*connections->io_threads));
	if (!connections->io_threads)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for I/O threads");
	for (unsigned i = 0; i < connections->n_connections; i++)
		PSD_TRY(psd_io_thread_open(&connections->io_threads[i], connections->n_peers,
					   options->first_processor + i, connections->n_connections,
					   connections->wake_fd, err));
	return PSD_OK;
}

enum psd_status psd_connections_open(struct psd_connections **connections,
				     const struct psd_connections_options *options, struct psd_error *err)
{
	struct psd_connections *opened = calloc(1, sizeof(*opened));
	int error;

	if (opened)
		*opened = (struct psd_connections){
			.n_peers = options->n_peers,
			.n_connections = options->n_connections,
			.n_all = options->n_peers * options->n_connections,
			.tag_bytes = options->tag_bytes,
			.owner = options->owner,
			.epoll_fd = -1,
			.wake_fd = options->wake_fd,
			.timer_fd = -1,
			.timer_sec = INFINITY,
		};
	if (!opened || !fill(opened, options)) {
		for (unsigned i = 0; i < options->n_peers * options->n_connections; i++) {
			struct psd_carrier carrier = options->carriers[i];

			psd_carrier_close(&carrier);
		}
		if (opened)
			opened->n_all = 0;
		psd_connections_close(opened);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u peers", options->n_peers);
	}
	if (!watch_all(opened)) {
		error = errno;
		psd_connections_close(opened);
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot watch connections: %s", strerror(error));
	}
	const enum psd_status status = open_io_threads(opened, options, err);
	if (status)
		psd_connections_close(opened);
	else
		*connections = opened;
	return status;
}

void psd_connections_close(struct psd_connections *connections)
{
	if (!connections)
		return;
	for (unsigned i = 0; connections->io_threads && i < connections->n_connections; i++)
		psd_io_thread_close(connections->io_threads[i]);
	free(connections->io_threads);
	for (unsigned i = 0; i < connections->n_all; i++) {
		psd_carrier_close(&connections->all[i].carrier);
		psd_chunk_sender_release(&connections->all[i].out);
	}
	if (connections->epoll_fd >= 0)
		close(connections->epoll_fd);
	if (connections->timer_fd >= 0)
		close(connections->timer_fd);
	free(connections->all);
	free(connections->peers);
	free(connections->arriving);
	free(connections->scratch);
	free(connections);
}

enum psd_status psd_connections_lose(struct psd_connections *connections, struct psd_connection *connection,
				     int error_number, struct psd_error *err)
{
	struct psd_io_thread *io_thread = psd_connections_io_thread(connections, connection, IO_JOB_BYTES);

	if (io_thread) {
		psd_io_thread_recall(io_thread, &connection->sending);
		psd_io_thread_recall(io_thread, &connection->reading);
	}
	psd_carrier_close(&connection->carrier); /* leaves epoll, too */
	return connections->owner.lost(connections->owner.context, connection->peer, error_number, err);
}

/* ---- time ---- */

void psd_connections_wake_at(struct psd_connections *connections, double sec)
{
	struct itimerspec at = {.it_value = {.tv_nsec = 1}}; /* all zeros would disarm it */

	if (!(sec < connections->timer_sec)) /* INFINITY and NaN */
		return;
	connections->timer_sec = sec;
	if (sec > 0.0) {
		sec = fmin(sec, LATEST_SEC);
		at.it_value.tv_sec = (time_t)sec;
		at.it_value.tv_nsec += (long)((sec - floor(sec)) * 999999998);
	}
	(void)timerfd_settime(connections->timer_fd, TFD_TIMER_ABSTIME, &at, NULL); /* fails for invalid times only */
}
