/* Incoming messages: finds where a chunk goes, has it moved, and tells when a message is complete. */
#define _GNU_SOURCE
#include "real/net/connections_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "real/net/socket.h"

enum { READ_ONCE_BYTES = 1 << 20 }; /* limit for one connection before the others get their turn */

static void deliver(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
		    const uint8_t *tag)
{
	connections->has_moved = connections->has_moved || head->kind != PSD_WIRE_ALIVE || head->part > 0;
	connections->has_delivered = true;
	connections->owner.arrived(connections->owner.context, peer, head, tag);
}

/* Returns NULL if no chunk was accepted so far, or if the message has one chunk. */
static struct psd_arriving *find_arriving(struct psd_connections *connections, unsigned peer,
					  const struct psd_wire_head *head)
{
	for (unsigned i = 0; i < connections->n_arriving; i++) {
		struct psd_arriving *arriving = &connections->arriving[i];

		if (arriving->peer == peer && arriving->head.op == head->op &&
		    arriving->head.iteration == head->iteration && arriving->head.part == head->part &&
		    arriving->head.length_bytes == head->length_bytes)
			return arriving;
	}
	return NULL;
}

/* Returns NULL when memory runs out. */
static struct psd_arriving *add_arriving(struct psd_connections *connections, unsigned peer,
					 const struct psd_wire_head *head, const struct psd_destination *destination)
{
	struct psd_arriving *grown =
		psd_grown(connections->arriving, connections->n_arriving, &connections->arriving_room, sizeof(*grown));

	if (!grown)
		return NULL;
	connections->arriving = grown;
	connections->arriving[connections->n_arriving] =
		(struct psd_arriving){.peer = peer,
				      .head = *head,
				      .destination = *destination,
				      .n_missing = psd_wire_chunks(head->length_bytes)};
	return &connections->arriving[connections->n_arriving++];
}

void psd_connections_finish_chunk(struct psd_connections *connections, struct psd_connection *connection)
{
	const struct psd_wire_head head = connection->in.head;
	struct psd_arriving *arriving =
		psd_wire_chunks(head.length_bytes) > 1 ? find_arriving(connections, connection->peer, &head) : NULL;
	uint8_t tag[PSD_WIRE_TAG_BYTES];

	memcpy(tag, connection->in.bytes + PSD_WIRE_HEAD_BYTES, sizeof(tag));
	if (arriving && head.chunk == 0)
		memcpy(arriving->tag, tag, sizeof(tag));
	psd_chunk_receiver_reset(&connection->in);
	if (arriving && --arriving->n_missing > 0)
		return;
	if (arriving) {
		memcpy(tag, arriving->tag, sizeof(tag));
		*arriving = connections->arriving[--connections->n_arriving];
	}
	deliver(connections, connection->peer, &head, tag);
}

/* Finds the destination of the message that a complete header announces. */
static enum psd_acceptance find_destination(struct psd_connections *connections,
					    const struct psd_connection *connection, struct psd_destination *whole,
					    struct psd_error *err)
{
	const struct psd_wire_head *head = &connection->in.head;
	const bool is_single = head->kind != PSD_WIRE_DATA || psd_wire_chunks(head->length_bytes) == 1;
	const struct psd_arriving *arriving = is_single ? NULL : find_arriving(connections, connection->peer, head);

	if (arriving) {
		*whole = arriving->destination;
		return PSD_ACCEPT_NOW;
	}
	*whole = (struct psd_destination){.n_segments = 0};
	const enum psd_acceptance acceptance =
		connections->owner.expect(connections->owner.context, connection->peer, head, whole, err);
	assert(acceptance != PSD_ACCEPT_NOW || psd_segments_bytes(whole->segments, whole->n_segments) ==
						       psd_destination_widening(whole) * head->length_bytes);
	if (acceptance == PSD_ACCEPT_NOW && !is_single && !add_arriving(connections, connection->peer, head, whole)) {
		psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for arrivals");
		return PSD_ACCEPT_NEVER;
	}
	return acceptance;
}

/* Bytes that certainly follow on this connection: the rest of the message if there is only one connection. */
static uint64_t bytes_behind(const struct psd_connections *connections, const struct psd_wire_head *head)
{
	const uint64_t end_byte = (head->chunk + UINT64_C(1)) * PSD_WIRE_CHUNK_BYTES;

	return connections->n_connections == 1 && end_byte < head->length_bytes ? head->length_bytes - end_byte : 0;
}

/* Lends the receiver to the connection's I/O thread, where that is worth it. */
static void give_reading(struct psd_connections *connections, struct psd_connection *connection)
{
	struct psd_io_thread *io_thread =
		psd_connections_io_thread(connections, connection, psd_chunk_receiver_missing_bytes(&connection->in));

	if (!io_thread)
		return;
	if (connection->has_low_water)
		connection->carrier.transport->set_low_water(&connection->carrier, 1);
	connection->has_low_water = false;
	connection->reading.carrier = connection->carrier;
	connection->reading.in = &connection->in;
	psd_io_thread_lend(io_thread, &connection->reading);
}

static enum psd_status open_chunk(struct psd_connections *connections, struct psd_connection *connection,
				  struct psd_error *err)
{
	const struct psd_wire_head *head = &connection->in.head;
	struct psd_destination whole, destination;

	switch (find_destination(connections, connection, &whole, err)) {
	case PSD_ACCEPT_NEVER: return err->status;
	case PSD_ACCEPT_LATER: connection->in.is_held = true; return PSD_OK;
	case PSD_ACCEPT_NOW: break;
	}
	const unsigned widening = psd_destination_widening(&whole);
	destination = whole;
	destination.n_segments = psd_segments_cut(
		whole.segments, whole.n_segments, widening * (head->chunk * PSD_WIRE_CHUNK_BYTES),
		widening * psd_wire_chunk_bytes(head->length_bytes, head->chunk), destination.segments);
	psd_chunk_receiver_open(&connection->in, &destination);
	connection->coming_bytes = bytes_behind(connections, head);
	if (psd_chunk_receiver_is_complete(&connection->in))
		psd_connections_finish_chunk(connections, connection);
	else
		give_reading(connections, connection);
	return PSD_OK;
}

static ssize_t read_head(struct psd_connections *connections, struct psd_connection *connection,
			 enum psd_status *status, struct psd_error *err)
{
	struct psd_error cause;
	const ssize_t n_read = psd_chunk_receiver_read_head(&connection->in, &connection->carrier,
							    connections->tag_bytes, status, &cause);

	if (n_read > 0 && *status)
		*status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "host %u %s", connection->peer, cause.text);
	else if (n_read > 0 && connection->in.has_head)
		*status = open_chunk(connections, connection, err);
	return n_read;
}

static ssize_t read_payload(struct psd_connections *connections, struct psd_connection *connection)
{
	const ssize_t n_read =
		psd_chunk_receiver_read(&connection->in, &connection->carrier, READ_ONCE_BYTES, connections->scratch);

	connections->has_moved = connections->has_moved || n_read > 0;
	if (n_read > 0 && psd_chunk_receiver_is_complete(&connection->in))
		psd_connections_finish_chunk(connections, connection);
	return n_read;
}

static void set_low_water(const struct psd_connections *connections, struct psd_connection *connection)
{
	if (connection->carrier.fd < 0 || connection->reading.state == PSD_IO_JOB_LENT)
		return;
	const uint64_t missing_bytes =
		connection->in.has_destination ? psd_chunk_receiver_missing_bytes(&connection->in) : 0;
	const bool has = missing_bytes + connection->coming_bytes >= connections->low_water_bytes;

	if (has == connection->has_low_water)
		return;
	connection->has_low_water = has;
	connection->carrier.transport->set_low_water(&connection->carrier, has ? connections->low_water_bytes : 1);
}

enum psd_status psd_connections_read(struct psd_connections *connections, struct psd_connection *connection,
				     struct psd_error *err)
{
	enum psd_status status = PSD_OK;
	size_t n_bytes = 0;

	/* epoll does not report bytes that were read ahead */
	while (!status && connection->carrier.fd >= 0 && psd_connection_reads(connection) &&
	       (n_bytes < READ_ONCE_BYTES || psd_chunk_receiver_is_ahead(&connection->in))) {
		const ssize_t n_read = connection->in.has_destination
					       ? read_payload(connections, connection)
					       : read_head(connections, connection, &status, err);

		if (n_read < 0 && errno == EAGAIN)
			break;
		if (n_read < 0 && errno == EINTR)
			continue;
		if (n_read <= 0)
			return psd_connections_lose(connections, connection, n_read < 0 ? errno : 0, err);
		connections->peers[connection->peer].heard_sec = psd_socket_now_sec();
		n_bytes += (size_t)n_read;
	}
	set_low_water(connections, connection);
	return status;
}

static enum psd_status resume_connection(struct psd_connections *connections, struct psd_connection *connection,
					 struct psd_error *err)
{
	const enum psd_status status = open_chunk(connections, connection, err);

	connections->peers[connection->peer].heard_sec = psd_socket_now_sec(); /* its next bytes were behind that */
	set_low_water(connections, connection);
	return status;
}

enum psd_status psd_connections_resume(struct psd_connections *connections, struct psd_error *err)
{
	do { /* a message accepted at once may make room for one that is held */
		connections->has_delivered = false;
		for (unsigned i = 0; i < connections->n_all; i++)
			if (connections->all[i].carrier.fd >= 0 && connections->all[i].in.is_held)
				PSD_TRY(resume_connection(connections, &connections->all[i], err));
	} while (connections->has_delivered);
	return PSD_OK;
}
