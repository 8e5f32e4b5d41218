/* Turns of the event loop: events of epoll, chunks that I/O threads have moved, and the timer. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "real/net/connections_parts.h"
#include "real/net/socket.h"

enum { MAX_EVENTS = 64 };

static void take_timer(struct psd_connections *connections)
{
	uint64_t count;

	if (read(connections->timer_fd, &count, sizeof(count)) >= 0)
		connections->timer_sec = INFINITY;
}

static enum psd_status deliver_due(struct psd_connections *connections, struct psd_error *err)
{
	bool has_delivered = false;
	enum psd_status status = PSD_OK;

	if (connections->owner.deliver_due)
		status = connections->owner.deliver_due(connections->owner.context, &has_delivered, err);
	connections->has_moved = connections->has_moved || has_delivered;
	connections->has_delivered = connections->has_delivered || has_delivered;
	return status;
}

/* Takes a chunk back that an I/O thread has moved. */
static enum psd_status take_job(struct psd_connections *connections, struct psd_connection *connection,
				const struct psd_io_job *job, struct psd_error *err)
{
	const int error = job->error_number;

	if (connection->carrier.fd < 0)
		return PSD_OK;
	if (job == &connection->sending) {
		if (job->is_complete)
			psd_connections_take_left(connections, connection->peer);
		else if (error != EPIPE && error != ECONNRESET) /* as in flush_connection() */
			return psd_connections_lose(connections, connection, error, err);
		return PSD_OK;
	}
	connections->peers[connection->peer].heard_sec = psd_socket_now_sec();
	if (!job->is_complete)
		return psd_connections_lose(connections, connection, error, err);
	psd_connections_finish_chunk(connections, connection);
	return psd_connections_read(connections, connection, err);
}

static enum psd_status take_jobs(struct psd_connections *connections, struct psd_error *err)
{
	for (unsigned i = 0; connections->io_threads && i < connections->n_connections; i++) {
		struct psd_io_job *job = NULL;

		while ((job = psd_io_thread_take_back(connections->io_threads[i])))
			PSD_TRY(take_job(connections, &connections->all[job->number], job, err));
	}
	return PSD_OK;
}

static enum psd_status take_event(struct psd_connections *connections, const struct epoll_event *event,
				  struct psd_error *err)
{
	uint64_t count;

	if (event->data.u32 == PSD_CONNECTIONS_WAKE) {
		if (read(connections->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN && errno != EINTR)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot read a counter: %s", strerror(errno));
		return PSD_OK;
	}
	if (event->data.u32 == PSD_CONNECTIONS_TIMER) {
		take_timer(connections);
		return PSD_OK;
	}
	struct psd_connection *connection = &connections->all[event->data.u32];
	if (connection->carrier.fd < 0)
		return PSD_OK;
	connection->carrier.transport->hear(&connection->carrier);
	if (connection->in.is_held && (event->events & (EPOLLHUP | EPOLLERR)))
		return psd_connections_lose(connections, connection, 0,
					    err); /* a peer counts as lost only after all its bytes were read */
	return event->events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? psd_connections_read(connections, connection, err)
							       : PSD_OK;
}

/* True if a connection has something that epoll does not report. Sets the timer for later such events. */
static bool ask_ready(struct psd_connections *connections)
{
	bool is_any = false;

	for (unsigned i = 0; i < connections->n_all; i++) {
		struct psd_connection *connection = &connections->all[i];

		connection->is_ready =
			connection->carrier.fd >= 0 &&
			connection->carrier.transport->is_ready(&connection->carrier, psd_connection_reads(connection),
								psd_connection_sends(connection));
		is_any = is_any || connection->is_ready;
		if (connection->carrier.fd >= 0 && connection->carrier.transport->again_sec)
			psd_connections_wake_at(connections,
						connection->carrier.transport->again_sec(
							&connection->carrier, psd_connection_reads(connection),
							psd_connection_sends(connection)));
	}
	if (connections->owner.due_sec)
		psd_connections_wake_at(connections, connections->owner.due_sec(connections->owner.context));
	return is_any;
}

/* Sending needs no check: a flush tries every connection. */
static enum psd_status read_ready(struct psd_connections *connections, struct psd_error *err)
{
	for (unsigned i = 0; i < connections->n_all; i++)
		if (connections->all[i].is_ready && psd_connection_reads(&connections->all[i]))
			PSD_TRY(psd_connections_read(connections, &connections->all[i], err));
	return PSD_OK;
}

/* Counts progress of I/O threads before a chunk is complete, which takes long on a slow link. */
static void count_progress(struct psd_connections *connections)
{
	double newest_sec = connections->moved_sec;

	for (unsigned i = 0; connections->io_threads && i < connections->n_all; i++) {
		const struct psd_connection *connection = &connections->all[i];

		newest_sec = fmax(newest_sec, fmax(psd_io_job_moved_sec(&connection->sending),
						   psd_io_job_moved_sec(&connection->reading)));
	}
	connections->has_moved = connections->has_moved || newest_sec > connections->moved_sec;
	connections->moved_sec = newest_sec;
}

enum psd_status psd_connections_turn(struct psd_connections *connections, int within_ms, bool *has_moved,
				     struct psd_error *err)
{
	struct epoll_event events[MAX_EVENTS];
	const bool is_ready = ask_ready(connections);
	const int n_events = epoll_wait(connections->epoll_fd, events, MAX_EVENTS, is_ready ? 0 : within_ms);
	enum psd_status status = PSD_OK;

	connections->has_moved = connections->has_delivered = false;
	if (n_events < 0 && errno != EINTR)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot wait for connections: %s", strerror(errno));
	for (int e = 0; e < n_events && !status; e++)
		status = take_event(connections, &events[e], err);
	if (!status)
		status = take_jobs(connections, err);
	if (!status && is_ready)
		status = read_ready(connections, err);
	if (!status)
		status = deliver_due(connections, err);
	if (!status && connections->has_delivered)
		status = psd_connections_resume(connections, err);
	if (!status)
		status = psd_connections_flush(connections, err);
	count_progress(connections);
	*has_moved = connections->has_moved;
	return status;
}
