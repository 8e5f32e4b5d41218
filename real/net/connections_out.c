/* Outgoing messages: chunks over any free connection, small messages between them. */
#define _GNU_SOURCE
#include "real/net/connections_parts.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "real/net/socket.h"

void psd_connections_send(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
			  const struct iovec segments[], unsigned n_segments)
{
	struct psd_peer *to = &connections->peers[peer];

	assert(to->n_left == to->n_chunks && n_segments <= PSD_SEGMENTS_MAX);
	to->head = *head;
	memcpy(to->segments, segments, n_segments * sizeof(*segments));
	to->n_segments = n_segments;
	to->n_chunks = psd_wire_chunks(head->length_bytes);
	to->n_assigned = to->n_left = 0;
	if (connections->tag_bytes > 0)
		connections->owner.stamp(connections->owner.context, peer, head, to->tag);
}

bool psd_connections_send_small(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
				const uint8_t *payload)
{
	return psd_chunk_sender_add_small(&connections->all[peer * connections->n_connections].out, head, payload);
}

double psd_connections_silent_sec(const struct psd_connections *connections, unsigned peer)
{
	const struct psd_connection *first = &connections->all[peer * connections->n_connections];
	double heard_sec = connections->peers[peer].heard_sec;

	if (first->in.is_held)
		return 0.0;
	for (unsigned i = 0; i < connections->n_connections; i++)
		heard_sec = fmax(heard_sec, psd_io_job_moved_sec(&first[i].reading));
	return psd_socket_now_sec() - heard_sec;
}

static bool has_chunks(const struct psd_connections *connections, const struct psd_connection *connection)
{
	const struct psd_peer *to = &connections->peers[connection->peer];

	return to->n_assigned < to->n_chunks;
}

bool psd_connections_has_queue(const struct psd_connections *connections)
{
	for (unsigned i = 0; i < connections->n_all; i++) {
		const struct psd_connection *connection = &connections->all[i];

		if (connection->carrier.fd >= 0 &&
		    (has_chunks(connections, connection) || !psd_chunk_sender_is_idle(&connection->out) ||
		     psd_carrier_holds(&connection->carrier) || connection->sending.state == PSD_IO_JOB_LENT))
			return true;
	}
	return false;
}

static struct psd_framed_chunk make_chunk(const struct psd_connections *connections, const struct psd_peer *to,
					  uint64_t chunk)
{
	struct psd_wire_head head = to->head;
	struct iovec cut[PSD_SEGMENTS_MAX];

	head.chunk = (uint32_t)chunk;
	const unsigned n_cut = psd_segments_cut(to->segments, to->n_segments, chunk * PSD_WIRE_CHUNK_BYTES,
						psd_wire_chunk_bytes(head.length_bytes, chunk), cut);
	return psd_framed_chunk_make(&head, to->tag, chunk == 0 ? connections->tag_bytes : 0, cut, n_cut);
}

/* Starts the next chunk on the connection, in its I/O thread if there is one and no small message waits. */
static void give_chunk(struct psd_connections *connections, struct psd_connection *connection)
{
	struct psd_peer *to = &connections->peers[connection->peer];
	const uint64_t chunk_bytes = psd_wire_chunk_bytes(to->head.length_bytes, to->n_assigned);
	const struct psd_framed_chunk framed = make_chunk(connections, to, to->n_assigned++);
	struct psd_io_thread *io_thread = psd_chunk_sender_is_idle(&connection->out)
						  ? psd_connections_io_thread(connections, connection, chunk_bytes)
						  : NULL;

	psd_chunk_sender_start(io_thread ? &connection->chunk : &connection->out, &framed);
	if (!io_thread)
		return;
	connection->sending.carrier = connection->carrier;
	connection->sending.carrier.has_more = false;
	connection->sending.out = &connection->chunk;
	psd_io_thread_lend(io_thread, &connection->sending);
}

void psd_connections_take_left(struct psd_connections *connections, unsigned peer)
{
	struct psd_peer *to = &connections->peers[peer];

	if (++to->n_left == to->n_chunks)
		connections->owner.left(connections->owner.context, peer);
}

/* Chunks that may be sent in one call with the current one. Only a single connection does so: with several, a chunk
 * that has begun on a slow one would be stuck. Small messages go first. */
static unsigned make_behind(const struct psd_connections *connections, const struct psd_connection *connection,
			    struct psd_framed_chunk behind[])
{
	const struct psd_peer *to = &connections->peers[connection->peer];
	unsigned n_behind = 0;

	if (connections->n_connections > 1 || !connection->out.is_active ||
	    psd_chunk_sender_has_small(&connection->out) || !connection->carrier.transport->takes_chunks_together)
		return 0;
	for (; n_behind < PSD_FRAMED_CHUNKS_MAX - 1 && to->n_assigned + n_behind < to->n_chunks; n_behind++)
		behind[n_behind] = make_chunk(connections, to, to->n_assigned + n_behind);
	return n_behind;
}

/* True if this connection surely gets another chunk: there are enough for all connections. */
static bool sends_again(const struct psd_connections *connections, const struct psd_connection *connection,
			unsigned n_behind)
{
	const struct psd_peer *to = &connections->peers[connection->peer];

	return to->n_chunks - to->n_assigned - n_behind >= connections->n_connections;
}

/* Sends once. *has_more: the transport may take more at once. */
static enum psd_status flush_connection(struct psd_connections *connections, struct psd_connection *connection,
					bool *has_more, struct psd_error *err)
{
	struct psd_framed_chunk behind[PSD_FRAMED_CHUNKS_MAX - 1];
	unsigned n_behind, n_begun, n_left;

	*has_more = false;
	if (connection->carrier.fd < 0 || connection->sending.state == PSD_IO_JOB_LENT)
		return PSD_OK;
	if (!connection->out.is_active && !connection->chunk.is_active && has_chunks(connections, connection))
		give_chunk(connections, connection);
	if (psd_chunk_sender_is_idle(&connection->out) || connection->sending.state == PSD_IO_JOB_LENT)
		return PSD_OK;
	const bool is_tensor = connection->out.is_active;
	n_behind = make_behind(connections, connection, behind);
	connection->carrier.has_more = is_tensor && sends_again(connections, connection, n_behind);
	const ssize_t sent =
		psd_chunk_sender_send(&connection->out, &connection->carrier, behind, n_behind, &n_begun, &n_left);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return PSD_OK;
	if (sent < 0) {
		/* bytes of the peer may explain it, so they are read first */
		return errno == EPIPE || errno == ECONNRESET
			       ? PSD_OK
			       : psd_connections_lose(connections, connection, errno, err);
	}
	connections->has_moved = connections->has_moved || (is_tensor && sent > 0);
	connections->peers[connection->peer].n_assigned += n_begun;
	while (n_left-- > 0)
		psd_connections_take_left(connections, connection->peer);
	/* a full buffer ends it with EAGAIN at the next attempt, which epoll then watches */
	*has_more = (!psd_chunk_sender_is_idle(&connection->out) || has_chunks(connections, connection)) &&
		    psd_chunk_sender_is_between_chunks(&connection->out);
	return PSD_OK;
}

enum psd_status psd_connections_flush(struct psd_connections *connections, struct psd_error *err)
{
	bool has_progress = true;

	while (has_progress) {
		has_progress = false;
		for (unsigned i = 0; i < connections->n_all; i++) {
			bool has_more;

			PSD_TRY(flush_connection(connections, &connections->all[i], &has_more, err));
			has_progress = has_progress || has_more;
		}
	}
	for (unsigned i = 0; i < connections->n_all; i++) {
		PSD_TRY(psd_connections_watch(connections, &connections->all[i], err));
	}
	return PSD_OK;
}
