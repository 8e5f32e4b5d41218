/* Each stream is two small state machines: what is being written, and what is being read. */
#define _GNU_SOURCE
#include "real/streams.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	SMALL_ROOM_MAX = 1 << 20,  /* bytes of small messages that may wait for one peer */
	READ_ONCE_BYTES = 1 << 20, /* from one peer before the others have their turn */
	ADD_BYTES = 1 << 17,	   /* a piece that stays in the second-level cache between the socket and the sum */
	MAX_EVENTS = 64,
};

struct outlet {
	uint8_t head[PSD_WIRE_HEAD_BYTES];
	struct iovec pieces[1 + PSD_PIECES_MAX]; /* head first; what has left is cut off */
	unsigned n_pieces;
	unsigned at;
	bool is_active;
	uint8_t *small; /* bytes of small messages, whole ones */
	size_t small_bytes;
	size_t small_room;
	size_t small_sent;
};

struct inflow {
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];
	size_t n_head_bytes;
	struct psd_wire_head head;
	struct psd_inlet inlet;
	unsigned at;
	bool has_inlet;
	bool is_held;
	unsigned n_carried; /* bytes of a float that is not complete */
	uint8_t carried[sizeof(float)];
};

struct stream {
	int fd; /* -1: none, or over */
	struct outlet out;
	struct inflow in;
	uint32_t events; /* that epoll watches */
};

struct psd_streams {
	struct stream *all;
	unsigned n_peers;
	int epoll_fd;
	int wake_fd;
	struct psd_streams_owner owner;
	uint8_t *scratch; /* received floats on their way to a sum */
	bool has_moved;
};

static enum psd_status watch(struct psd_streams *streams, unsigned peer, struct psd_error *err)
{
	struct stream *stream = &streams->all[peer];
	const bool has_output = stream->out.is_active || stream->out.small_bytes > 0;
	const uint32_t events = (stream->in.is_held ? 0u : (uint32_t)EPOLLIN) | (has_output ? (uint32_t)EPOLLOUT : 0u);
	struct epoll_event event = {.events = events, .data.u32 = peer};

	if (stream->fd < 0 || events == stream->events)
		return PSD_OK;
	stream->events = events;
	if (epoll_ctl(streams->epoll_fd, EPOLL_CTL_MOD, stream->fd, &event) < 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot watch a connection: %s", strerror(errno));
	return PSD_OK;
}

enum psd_status psd_streams_open(struct psd_streams **streams, unsigned n_peers, const int fds[], int wake_fd,
				 const struct psd_streams_owner *owner, struct psd_error *err)
{
	struct psd_streams *opened = calloc(1, sizeof(*opened));
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
	bool is_watched;

	if (opened)
		*opened = (struct psd_streams){.n_peers = n_peers,
					       .owner = *owner,
					       .wake_fd = wake_fd,
					       .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
					       .all = calloc(n_peers + 1u, sizeof(*opened->all)),
					       .scratch = aligned_alloc(64, ADD_BYTES)};
	if (!opened || !opened->all || !opened->scratch) {
		for (unsigned p = 0; p < n_peers; p++)
			if (fds[p] >= 0)
				close(fds[p]);
		if (opened)
			opened->n_peers = 0;
		psd_streams_close(opened);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u connections", n_peers);
	}
	is_watched = opened->epoll_fd >= 0 && epoll_ctl(opened->epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) == 0;
	for (unsigned p = 0; p < n_peers; p++) {
		opened->all[p].fd = fds[p];
		opened->all[p].events = EPOLLIN;
		event.data.u32 = p;
		if (fds[p] >= 0 && is_watched)
			is_watched = epoll_ctl(opened->epoll_fd, EPOLL_CTL_ADD, fds[p], &event) == 0;
	}
	if (!is_watched) {
		const int error = errno;

		psd_streams_close(opened);
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot watch connections: %s", strerror(error));
	}
	*streams = opened;
	return PSD_OK;
}

void psd_streams_close(struct psd_streams *streams)
{
	if (!streams)
		return;
	for (unsigned p = 0; p < streams->n_peers; p++) {
		if (streams->all[p].fd >= 0)
			close(streams->all[p].fd);
		free(streams->all[p].out.small);
	}
	if (streams->epoll_fd >= 0)
		close(streams->epoll_fd);
	free(streams->all);
	free(streams->scratch);
	free(streams);
}

/* ---- out ---- */

void psd_streams_send(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head, const struct iovec pieces[],
		      unsigned n_pieces)
{
	struct outlet *out = &streams->all[peer].out;

	assert(!out->is_active && n_pieces <= PSD_PIECES_MAX);
	psd_wire_encode(head, out->head);
	out->pieces[0] = (struct iovec){out->head, sizeof(out->head)};
	for (unsigned i = 0; i < n_pieces; i++)
		out->pieces[1 + i] = pieces[i];
	out->n_pieces = 1 + n_pieces;
	out->at = 0;
	out->is_active = true;
}

bool psd_streams_send_small(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head, const uint8_t *payload)
{
	struct outlet *out = &streams->all[peer].out;
	const size_t bytes = PSD_WIRE_HEAD_BYTES + head->length_bytes;

	if (out->small_bytes + bytes > out->small_room) {
		const size_t room = out->small_room ? 2 * out->small_room : 1024;
		uint8_t *grown = room <= SMALL_ROOM_MAX ? realloc(out->small, room) : NULL;

		if (!grown)
			return false;
		out->small = grown;
		out->small_room = room;
	}
	psd_wire_encode(head, out->small + out->small_bytes);
	memcpy(out->small + out->small_bytes + PSD_WIRE_HEAD_BYTES, payload, head->length_bytes);
	out->small_bytes += bytes;
	return true;
}

bool psd_streams_has_queue(const struct psd_streams *streams)
{
	for (unsigned p = 0; p < streams->n_peers; p++)
		if (streams->all[p].fd >= 0 && (streams->all[p].out.is_active || streams->all[p].out.small_bytes))
			return true;
	return false;
}

/* Cuts sent bytes off the pieces. */
static void advance(struct iovec *pieces, unsigned n_pieces, unsigned *at, size_t bytes)
{
	while (*at < n_pieces && bytes >= pieces[*at].iov_len) {
		bytes -= pieces[*at].iov_len;
		++*at;
	}
	if (*at < n_pieces) {
		pieces[*at].iov_base = (char *)pieces[*at].iov_base + bytes;
		pieces[*at].iov_len -= bytes;
	}
}

static bool is_between_messages(const struct outlet *out)
{
	return !out->is_active || (out->at == 0 && out->pieces[0].iov_len == PSD_WIRE_HEAD_BYTES);
}

/* Returns what sendmsg does: of small messages first, if no other has begun. */
static ssize_t send_some(struct stream *stream)
{
	struct outlet *out = &stream->out;
	struct iovec small = {out->small + out->small_sent, out->small_bytes - out->small_sent};
	const bool is_small = small.iov_len > 0 && is_between_messages(out);
	struct msghdr message = {.msg_iov = is_small ? &small : out->pieces + out->at,
				 .msg_iovlen = is_small ? 1 : out->n_pieces - out->at};
	const ssize_t sent = sendmsg(stream->fd, &message, MSG_NOSIGNAL);

	if (sent <= 0)
		return sent;
	if (!is_small) {
		advance(out->pieces, out->n_pieces, &out->at, (size_t)sent);
		return sent;
	}
	out->small_sent += (size_t)sent;
	if (out->small_sent == out->small_bytes)
		out->small_sent = out->small_bytes = 0;
	return sent;
}

static enum psd_status lose(struct psd_streams *streams, unsigned peer, int error_number, struct psd_error *err)
{
	struct stream *stream = &streams->all[peer];

	close(stream->fd); /* leaves epoll, too */
	stream->fd = -1;
	return streams->owner.lost(streams->owner.context, peer, error_number, err);
}

/* *has_more: the kernel may take more at once. */
static enum psd_status flush_stream(struct psd_streams *streams, unsigned peer, bool *has_more, struct psd_error *err)
{
	struct stream *stream = &streams->all[peer];
	struct outlet *out = &stream->out;
	ssize_t sent;

	*has_more = false;
	if (stream->fd < 0 || (!out->is_active && !out->small_bytes))
		return PSD_OK;
	sent = send_some(stream);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return PSD_OK;
	if (sent < 0) {
		/* what the peer said before it went may explain it: reading comes first */
		return errno == EPIPE || errno == ECONNRESET ? PSD_OK : lose(streams, peer, errno, err);
	}
	streams->has_moved = streams->has_moved || sent > 0;
	if (out->is_active && out->at == out->n_pieces) {
		out->is_active = false;
		streams->owner.left(streams->owner.context, peer);
	}
	*has_more = out->is_active || out->small_bytes;
	return PSD_OK;
}

enum psd_status psd_streams_flush(struct psd_streams *streams, struct psd_error *err)
{
	bool has_progress = true;

	while (has_progress) {
		has_progress = false;
		for (unsigned p = 0; p < streams->n_peers; p++) {
			bool has_more;
			const enum psd_status status = flush_stream(streams, p, &has_more, err);

			if (status)
				return status;
			/* a full buffer ends it with EAGAIN at the next attempt, which epoll then watches */
			has_progress = has_progress || (has_more && is_between_messages(&streams->all[p].out));
		}
	}
	for (unsigned p = 0; p < streams->n_peers; p++) {
		const enum psd_status status = watch(streams, p, err);

		if (status)
			return status;
	}
	return PSD_OK;
}

/* ---- in ---- */

static uint64_t bytes_of(const struct psd_inlet *inlet)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < inlet->n_pieces; i++)
		bytes += inlet->pieces[i].iov_len;
	return bytes;
}

static void finish_message(struct psd_streams *streams, unsigned peer)
{
	struct inflow *in = &streams->all[peer].in;
	const struct psd_wire_head head = in->head;

	*in = (struct inflow){0};
	streams->owner.arrived(streams->owner.context, peer, &head);
}

/* A whole header is there. */
static enum psd_status ask_owner(struct psd_streams *streams, unsigned peer, struct psd_error *err)
{
	struct inflow *in = &streams->all[peer].in;

	in->inlet = (struct psd_inlet){.n_pieces = 0};
	in->at = 0;
	switch (streams->owner.expect(streams->owner.context, peer, &in->head, &in->inlet, err)) {
	case PSD_WELCOME_REFUSED: return PSD_ERUN;
	case PSD_WELCOME_LATER: in->is_held = true; return PSD_OK;
	case PSD_WELCOME_NOW: break;
	}
	assert(bytes_of(&in->inlet) == in->head.length_bytes);
	in->is_held = false;
	in->has_inlet = true;
	if (in->head.length_bytes == 0)
		finish_message(streams, peer);
	return PSD_OK;
}

static ssize_t read_head(struct psd_streams *streams, unsigned peer, enum psd_status *status, struct psd_error *err)
{
	struct stream *stream = &streams->all[peer];
	struct inflow *in = &stream->in;
	const ssize_t n_read = recv(stream->fd, in->bytes + in->n_head_bytes, sizeof(in->bytes) - in->n_head_bytes, 0);
	struct psd_error cause;

	if (n_read <= 0)
		return n_read;
	in->n_head_bytes += (size_t)n_read;
	if (in->n_head_bytes < sizeof(in->bytes))
		return n_read;
	if (psd_wire_decode(in->bytes, &in->head, &cause))
		*status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "host %u %s", peer, cause.text);
	else
		*status = ask_owner(streams, peer, err);
	return n_read;
}

/* Adds whole floats, keeps the bytes of a split one for the next time. Pieces hold whole floats, so none is split between two. */
static ssize_t read_and_add(struct psd_streams *streams, struct stream *stream)
{
	struct inflow *in = &stream->in;
	struct iovec *piece = &in->inlet.pieces[in->at];
	const size_t wanted = piece->iov_len - in->n_carried < ADD_BYTES - sizeof(float) ? piece->iov_len - in->n_carried
											 : ADD_BYTES - sizeof(float);
	const ssize_t n_read = recv(stream->fd, streams->scratch + in->n_carried, wanted, 0);
	const float *added = (const float *)(const void *)streams->scratch;
	float *sum = piece->iov_base;
	size_t n_bytes, n_floats;

	if (n_read <= 0)
		return n_read;
	memcpy(streams->scratch, in->carried, in->n_carried);
	n_bytes = in->n_carried + (size_t)n_read;
	n_floats = n_bytes / sizeof(float);
	for (size_t i = 0; i < n_floats; i++)
		sum[i] += added[i];
	in->n_carried = (unsigned)(n_bytes % sizeof(float));
	memcpy(in->carried, streams->scratch + n_floats * sizeof(float), in->n_carried);
	advance(in->inlet.pieces, in->inlet.n_pieces, &in->at, n_floats * sizeof(float));
	return n_read;
}

static ssize_t read_payload(struct psd_streams *streams, unsigned peer)
{
	struct stream *stream = &streams->all[peer];
	struct inflow *in = &stream->in;
	ssize_t n_read;

	if (in->inlet.is_added) {
		n_read = read_and_add(streams, stream);
	} else {
		struct msghdr message = {.msg_iov = in->inlet.pieces + in->at, .msg_iovlen = in->inlet.n_pieces - in->at};

		n_read = recvmsg(stream->fd, &message, 0);
		if (n_read > 0)
			advance(in->inlet.pieces, in->inlet.n_pieces, &in->at, (size_t)n_read);
	}
	if (n_read > 0 && in->at == in->inlet.n_pieces)
		finish_message(streams, peer);
	return n_read;
}

static enum psd_status read_stream(struct psd_streams *streams, unsigned peer, struct psd_error *err)
{
	struct stream *stream = &streams->all[peer];
	enum psd_status status = PSD_OK;
	size_t n_bytes = 0;

	while (!status && stream->fd >= 0 && !stream->in.is_held && n_bytes < READ_ONCE_BYTES) {
		const ssize_t n_read =
			stream->in.has_inlet ? read_payload(streams, peer) : read_head(streams, peer, &status, err);

		if (n_read < 0 && errno == EAGAIN)
			break;
		if (n_read < 0 && errno == EINTR)
			continue;
		if (n_read <= 0)
			return lose(streams, peer, n_read < 0 ? errno : 0, err);
		streams->has_moved = true;
		n_bytes += (size_t)n_read;
	}
	return status;
}

enum psd_status psd_streams_resume(struct psd_streams *streams, struct psd_error *err)
{
	for (unsigned p = 0; p < streams->n_peers; p++) {
		struct stream *stream = &streams->all[p];
		enum psd_status status = PSD_OK;

		if (stream->fd >= 0 && stream->in.is_held)
			status = ask_owner(streams, p, err);
		if (!status)
			status = watch(streams, p, err);
		if (status)
			return status;
	}
	return PSD_OK;
}

enum psd_status psd_streams_turn(struct psd_streams *streams, int within_ms, bool *has_moved, struct psd_error *err)
{
	struct epoll_event events[MAX_EVENTS];
	const int n_events = epoll_wait(streams->epoll_fd, events, MAX_EVENTS, within_ms);
	enum psd_status status = PSD_OK;

	streams->has_moved = false;
	if (n_events < 0 && errno != EINTR)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot wait for connections: %s", strerror(errno));
	for (int e = 0; e < n_events && !status; e++) {
		const unsigned peer = events[e].data.u32;
		uint64_t count;

		if (peer == UINT32_MAX)
			while (read(streams->wake_fd, &count, sizeof(count)) > 0)
				;
		else if (streams->all[peer].fd >= 0 && streams->all[peer].in.is_held &&
			 (events[e].events & (EPOLLHUP | EPOLLERR)))
			status = lose(streams, peer, 0, err); /* nobody leaves before all has been taken from it */
		else if (streams->all[peer].fd >= 0 && (events[e].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
			status = read_stream(streams, peer, err);
	}
	if (!status)
		status = psd_streams_flush(streams, err);
	*has_moved = streams->has_moved;
	return status;
}
