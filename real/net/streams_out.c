/* Messages that go out: chunks to whichever connection has room, small ones between. */
#define _GNU_SOURCE
#include "real/net/streams_parts.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "real/net/socket.h"

void psd_streams_send(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head,
		      const struct iovec pieces[], unsigned n_pieces)
{
	struct psd_peer *to = &streams->peers[peer];

	assert(to->n_left == to->n_chunks && n_pieces <= PSD_PIECES_MAX);
	to->head = *head;
	memcpy(to->pieces, pieces, n_pieces * sizeof(*pieces));
	to->n_pieces = n_pieces;
	to->n_chunks = psd_wire_chunks(head->length_bytes);
	to->n_given = to->n_left = 0;
	if (streams->tag_bytes > 0)
		streams->owner.stamp(streams->owner.context, peer, head, to->tag);
}

bool psd_streams_send_small(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head,
			    const uint8_t *payload)
{
	return psd_outlet_add_small(&streams->lines[peer * streams->n_lines].out, head, payload);
}

double psd_streams_silent_sec(const struct psd_streams *streams, unsigned peer)
{
	const struct psd_line *first = &streams->lines[peer * streams->n_lines];
	double heard_sec = streams->peers[peer].heard_sec;

	if (first->in.is_held)
		return 0.0;
	for (unsigned i = 0; i < streams->n_lines; i++)
		heard_sec = fmax(heard_sec, psd_errand_moved_sec(&first[i].reading));
	return psd_socket_now_sec() - heard_sec;
}

static bool has_chunks(const struct psd_streams *streams, const struct psd_line *line)
{
	const struct psd_peer *to = &streams->peers[line->peer];

	return to->n_given < to->n_chunks;
}

bool psd_streams_has_queue(const struct psd_streams *streams)
{
	for (unsigned i = 0; i < streams->n_all; i++) {
		const struct psd_line *line = &streams->lines[i];

		if (line->carrier.fd >= 0 &&
		    (has_chunks(streams, line) || !psd_outlet_is_idle(&line->out) ||
		     psd_carrier_holds(&line->carrier) || line->sending.state == PSD_ERRAND_GIVEN))
			return true;
	}
	return false;
}

/* Of the message to a peer. */
static struct psd_parcel make_parcel(const struct psd_streams *streams, const struct psd_peer *to, uint64_t chunk)
{
	struct psd_wire_head head = to->head;
	struct iovec cut[PSD_PIECES_MAX];
	unsigned n_cut;

	head.chunk = (uint32_t)chunk;
	n_cut = psd_pieces_cut(to->pieces, to->n_pieces, chunk * PSD_WIRE_CHUNK_BYTES,
			       psd_wire_chunk_bytes(head.length_bytes, chunk), cut);
	return psd_parcel_make(&head, to->tag, chunk == 0 ? streams->tag_bytes : 0, cut, n_cut);
}

/* The next chunk is the line's, and its porter's where it has one and no small message waits. */
static void give_chunk(struct psd_streams *streams, struct psd_line *line)
{
	struct psd_peer *to = &streams->peers[line->peer];
	const uint64_t chunk_bytes = psd_wire_chunk_bytes(to->head.length_bytes, to->n_given);
	const struct psd_parcel parcel = make_parcel(streams, to, to->n_given++);
	struct psd_porter *porter =
		psd_outlet_is_idle(&line->out) ? psd_streams_porter(streams, line, chunk_bytes) : NULL;

	psd_outlet_start(porter ? &line->chunk : &line->out, &parcel);
	if (!porter)
		return;
	line->sending.carrier = line->carrier;
	line->sending.carrier.has_more = false;
	line->sending.out = &line->chunk;
	psd_porter_give(porter, &line->sending);
}

void psd_streams_take_left(struct psd_streams *streams, unsigned peer)
{
	struct psd_peer *to = &streams->peers[peer];

	if (++to->n_left == to->n_chunks)
		streams->owner.left(streams->owner.context, peer);
}

/* Chunks that may leave with the line's, in one call. They are nobody's until they begin: with several connections one
 * that has begun might stand still, so that each takes one at a time; and small messages go before all others. */
static unsigned make_behind(const struct psd_streams *streams, const struct psd_line *line, struct psd_parcel behind[])
{
	const struct psd_peer *to = &streams->peers[line->peer];
	unsigned n_behind = 0;

	if (streams->n_lines > 1 || !line->out.is_active || psd_outlet_has_small(&line->out) ||
	    !line->carrier.transport->takes_chunks_together)
		return 0;
	for (; n_behind < PSD_PARCELS_MAX - 1 && to->n_given + n_behind < to->n_chunks; n_behind++)
		behind[n_behind] = make_parcel(streams, to, to->n_given + n_behind);
	return n_behind;
}

/* Each line takes a chunk in its turn: the line that has one now is sure of another if all others can have one, too. */
static bool sends_again(const struct psd_streams *streams, const struct psd_line *line, unsigned n_behind)
{
	const struct psd_peer *to = &streams->peers[line->peer];

	return to->n_chunks - to->n_given - n_behind >= streams->n_lines;
}

/* Sends once. *has_more: the transport may take more at once. */
static enum psd_status flush_line(struct psd_streams *streams, struct psd_line *line, bool *has_more,
				  struct psd_error *err)
{
	struct psd_parcel behind[PSD_PARCELS_MAX - 1];
	unsigned n_behind, n_begun, n_left;
	bool is_tensor;
	ssize_t sent;

	*has_more = false;
	if (line->carrier.fd < 0 || line->sending.state == PSD_ERRAND_GIVEN)
		return PSD_OK;
	if (!line->out.is_active && !line->chunk.is_active && has_chunks(streams, line))
		give_chunk(streams, line);
	if (psd_outlet_is_idle(&line->out) || line->sending.state == PSD_ERRAND_GIVEN)
		return PSD_OK;
	is_tensor = line->out.is_active;
	n_behind = make_behind(streams, line, behind);
	line->carrier.has_more = is_tensor && sends_again(streams, line, n_behind);
	sent = psd_outlet_send(&line->out, &line->carrier, behind, n_behind, &n_begun, &n_left);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return PSD_OK;
	if (sent < 0) {
		/* what the peer said before it went may explain it: reading comes first */
		return errno == EPIPE || errno == ECONNRESET ? PSD_OK : psd_streams_lose(streams, line, errno, err);
	}
	streams->has_moved = streams->has_moved || (is_tensor && sent > 0);
	streams->peers[line->peer].n_given += n_begun;
	while (n_left-- > 0)
		psd_streams_take_left(streams, line->peer);
	/* a full buffer ends it with EAGAIN at the next attempt, which epoll then watches */
	*has_more = (!psd_outlet_is_idle(&line->out) || has_chunks(streams, line)) &&
		    psd_outlet_is_between_chunks(&line->out);
	return PSD_OK;
}

enum psd_status psd_streams_flush(struct psd_streams *streams, struct psd_error *err)
{
	bool has_progress = true;

	while (has_progress) {
		has_progress = false;
		for (unsigned i = 0; i < streams->n_all; i++) {
			bool has_more;
			const enum psd_status status = flush_line(streams, &streams->lines[i], &has_more, err);

			if (status)
				return status;
			has_progress = has_progress || has_more;
		}
	}
	for (unsigned i = 0; i < streams->n_all; i++) {
		const enum psd_status status = psd_streams_watch(streams, &streams->lines[i], err);

		if (status)
			return status;
	}
	return PSD_OK;
}
