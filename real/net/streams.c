/* Each connection is two small state machines, an outlet and an inflow; this is what drives them. */
#define _GNU_SOURCE
#include "real/net/streams.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "real/net/porter.h"
#include "real/net/socket.h"

enum {
	READ_ONCE_BYTES = 1 << 20, /* from one connection before the others have their turn */
	MIN_LOW_WATER_BYTES = 1 << 14,
	MAX_LOW_WATER_BYTES = 1 << 18,
	/* Close to the link: else what comes behind a message finds the link free that is not. */
	CLOSE_UNSENT_BYTES = 1 << 16,
	ERRAND_BYTES = 1 << 16, /* less is through before a socket thread has heard of it */
	MAX_EVENTS = 64,
};

/* A link hands over a few kilobytes at a time, and waking up for each costs more than what is in them: of what is
 * missing of a payload, less than this much line time is not worth it. */
#define LOW_WATER_SEC 2e-3

#define LATEST_SEC 1e9 /* no machine runs for so long */

/* In epoll, beside the numbers of lines. */
#define WAKE  UINT32_MAX
#define TIMER (UINT32_MAX - 1)

struct line {
	unsigned peer;
	struct psd_carrier carrier;
	struct psd_outlet out;
	struct psd_inflow in;
	uint32_t events; /* that epoll watches */
	bool is_ready;	 /* to be read, though epoll does not say so */
	bool has_low_water;
	struct psd_outlet chunk; /* of `sending` */
	struct psd_errand sending, reading;
	uint64_t coming_bytes; /* that surely come on it behind the chunk that is coming, or came last */
};

struct peer {
	double heard_sec; /* when anything last came from it */

	/* The message to it. */
	struct psd_wire_head head;
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	struct iovec pieces[PSD_PIECES_MAX];
	unsigned n_pieces;
	uint64_t n_chunks, n_given; /* chunks: all, and given to lines */
	uint64_t n_left;	    /* chunks that the transport has */
};

/* A message of several chunks, some of which have come. */
struct arriving {
	unsigned peer;
	struct psd_wire_head head; /* of any chunk */
	struct psd_inlet inlet;	   /* of the whole */
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	uint64_t n_missing; /* chunks that are not complete */
};

struct psd_streams {
	struct line *lines;
	struct peer *peers;
	struct psd_porter **porters; /* one for each of n_lines; NULL: the loop moves all */
	struct arriving *arriving;
	size_t n_arriving, arriving_room;
	unsigned n_peers, n_lines, n_all;
	int epoll_fd, wake_fd, timer_fd;
	unsigned tag_bytes;
	struct psd_streams_owner owner;
	uint8_t *scratch; /* received floats on their way to a sum */
	bool has_moved;
	double moved_sec; /* by socket threads, as far as a turn has said; 0: never */
	bool has_told;	  /* arrivals may have made room for what is held */

	uint64_t low_water_bytes; /* UINT64_MAX: none */
	double timer_sec;	  /* when it rings; INFINITY: never */
};

static unsigned line_number(const struct psd_streams *streams, const struct line *line)
{
	return (unsigned)(line - streams->lines);
}

static bool sends(const struct line *line)
{
	return !psd_outlet_is_idle(&line->out) && line->sending.state == PSD_ERRAND_HOME;
}

static bool reads(const struct line *line)
{
	return !line->in.is_held && line->reading.state == PSD_ERRAND_HOME;
}

static enum psd_status watch(struct psd_streams *streams, struct line *line, struct psd_error *err)
{
	struct psd_carrier *carrier = &line->carrier;
	const uint32_t events = carrier->fd < 0 ? 0 : carrier->transport->events(carrier, reads(line), sends(line));
	struct epoll_event event = {.events = events, .data.u32 = line_number(streams, line)};

	if (carrier->fd < 0 || events == line->events)
		return PSD_OK;
	line->events = events;
	if (epoll_ctl(streams->epoll_fd, EPOLL_CTL_MOD, carrier->fd, &event) < 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot watch a connection: %s", strerror(errno));
	return PSD_OK;
}

/* ---- opening ---- */

static bool add_to_epoll(struct psd_streams *streams, int fd, uint32_t number)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

	return epoll_ctl(streams->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool watch_all(struct psd_streams *streams)
{
	streams->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	streams->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (streams->epoll_fd < 0 || streams->timer_fd < 0 || !add_to_epoll(streams, streams->wake_fd, WAKE) ||
	    !add_to_epoll(streams, streams->timer_fd, TIMER))
		return false;
	for (unsigned i = 0; i < streams->n_all; i++) {
		streams->lines[i].events = EPOLLIN;
		if (streams->lines[i].carrier.fd >= 0 && !add_to_epoll(streams, streams->lines[i].carrier.fd, i))
			return false;
	}
	return true;
}

static uint64_t low_water_of(double link_bps)
{
	const double bytes = fmin(link_bps / 8 * LOW_WATER_SEC, MAX_LOW_WATER_BYTES);

	return bytes < MIN_LOW_WATER_BYTES ? UINT64_MAX : (uint64_t)bytes;
}

static bool fill(struct psd_streams *streams, const struct psd_streams_options *options)
{
	streams->lines = calloc(streams->n_all + 1u, sizeof(*streams->lines));
	streams->peers = calloc(streams->n_peers + 1u, sizeof(*streams->peers));
	streams->scratch = aligned_alloc(64, PSD_INFLOW_SCRATCH_BYTES);
	if (!streams->lines || !streams->peers || !streams->scratch)
		return false;
	for (unsigned p = 0; p < streams->n_peers; p++)
		streams->peers[p].heard_sec = psd_socket_now_sec();
	for (unsigned i = 0; i < streams->n_all; i++) {
		streams->lines[i].peer = i / streams->n_lines;
		streams->lines[i].carrier = options->carriers[i];
		streams->lines[i].sending.number = streams->lines[i].reading.number = i;
		streams->lines[i].sending.slot = streams->lines[i].reading.slot = i / streams->n_lines;
		if (options->carriers[i].fd >= 0)
			options->carriers[i].transport->limit_unsent(
				&streams->lines[i].carrier,
				options->is_close_to_link ? CLOSE_UNSENT_BYTES : PSD_STREAMS_UNSENT_BYTES);
	}
	streams->low_water_bytes = low_water_of(options->link_bps);
	return true;
}

/* For the chunk of a line; NULL: the loop moves it. */
static struct psd_porter *porter_for(const struct psd_streams *streams, const struct line *line, uint64_t bytes)
{
	return streams->porters && line->carrier.transport->is_for_threads && bytes >= ERRAND_BYTES
		       ? streams->porters[line_number(streams, line) % streams->n_lines]
		       : NULL;
}

static enum psd_status open_porters(struct psd_streams *streams, const struct psd_streams_options *options,
				    struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	if (!options->has_threads)
		return PSD_OK;
	streams->porters = calloc(streams->n_lines, sizeof(*streams->porters));
	if (!streams->porters)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for socket threads");
	for (unsigned i = 0; i < streams->n_lines && !status; i++)
		status = psd_porter_open(&streams->porters[i], streams->n_peers, options->first_processor + i,
					 streams->n_lines, streams->wake_fd, err);
	return status;
}

enum psd_status psd_streams_open(struct psd_streams **streams, const struct psd_streams_options *options,
				 struct psd_error *err)
{
	struct psd_streams *opened = calloc(1, sizeof(*opened));
	enum psd_status status;
	int error;

	if (opened)
		*opened = (struct psd_streams){
			.n_peers = options->n_peers,
			.n_lines = options->n_lines,
			.n_all = options->n_peers * options->n_lines,
			.tag_bytes = options->tag_bytes,
			.owner = options->owner,
			.epoll_fd = -1,
			.wake_fd = options->wake_fd,
			.timer_fd = -1,
			.timer_sec = INFINITY,
		};
	if (!opened || !fill(opened, options)) {
		for (unsigned i = 0; i < options->n_peers * options->n_lines; i++) {
			struct psd_carrier carrier = options->carriers[i];

			psd_carrier_close(&carrier);
		}
		if (opened)
			opened->n_all = 0;
		psd_streams_close(opened);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u peers", options->n_peers);
	}
	if (!watch_all(opened)) {
		error = errno;
		psd_streams_close(opened);
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot watch connections: %s", strerror(error));
	}
	status = open_porters(opened, options, err);
	if (status)
		psd_streams_close(opened);
	else
		*streams = opened;
	return status;
}

void psd_streams_close(struct psd_streams *streams)
{
	if (!streams)
		return;
	for (unsigned i = 0; streams->porters && i < streams->n_lines; i++)
		psd_porter_close(streams->porters[i]);
	free(streams->porters);
	for (unsigned i = 0; i < streams->n_all; i++) {
		psd_carrier_close(&streams->lines[i].carrier);
		psd_outlet_release(&streams->lines[i].out);
	}
	if (streams->epoll_fd >= 0)
		close(streams->epoll_fd);
	if (streams->timer_fd >= 0)
		close(streams->timer_fd);
	free(streams->lines);
	free(streams->peers);
	free(streams->arriving);
	free(streams->scratch);
	free(streams);
}

static enum psd_status lose(struct psd_streams *streams, struct line *line, int error_number, struct psd_error *err)
{
	struct psd_porter *porter = porter_for(streams, line, ERRAND_BYTES);

	if (porter) {
		psd_porter_recall(porter, &line->sending);
		psd_porter_recall(porter, &line->reading);
	}
	psd_carrier_close(&line->carrier); /* leaves epoll, too */
	return streams->owner.lost(streams->owner.context, line->peer, error_number, err);
}

/* ---- time ---- */

void psd_streams_wake_at(struct psd_streams *streams, double sec)
{
	struct itimerspec at = {.it_value = {.tv_nsec = 1}}; /* all zeros would disarm it */

	if (!(sec < streams->timer_sec)) /* INFINITY, and what is no number */
		return;
	streams->timer_sec = sec;
	if (sec > 0.0) {
		sec = fmin(sec, LATEST_SEC);
		at.it_value.tv_sec = (time_t)sec;
		at.it_value.tv_nsec += (long)((sec - floor(sec)) * 999999998);
	}
	(void)timerfd_settime(streams->timer_fd, TFD_TIMER_ABSTIME, &at, NULL); /* fails for impossible times only */
}

/* The timer has rung. */
static void take_timer(struct psd_streams *streams)
{
	uint64_t count;

	if (read(streams->timer_fd, &count, sizeof(count)) >= 0)
		streams->timer_sec = INFINITY;
}

static void tell(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag)
{
	streams->has_moved = streams->has_moved || head->kind != PSD_WIRE_ALIVE || head->part > 0;
	streams->has_told = true;
	streams->owner.arrived(streams->owner.context, peer, head, tag);
}

static enum psd_status tell_due(struct psd_streams *streams, struct psd_error *err)
{
	bool has_told = false;
	enum psd_status status = PSD_OK;

	if (streams->owner.tell_due)
		status = streams->owner.tell_due(streams->owner.context, &has_told, err);
	streams->has_moved = streams->has_moved || has_told;
	streams->has_told = streams->has_told || has_told;
	return status;
}

/* ---- out ---- */

void psd_streams_send(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head,
		      const struct iovec pieces[], unsigned n_pieces)
{
	struct peer *to = &streams->peers[peer];

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

static double last_moved_sec(const struct psd_errand *errand)
{
	return atomic_load_explicit(&errand->moved_sec, memory_order_relaxed);
}

double psd_streams_silent_sec(const struct psd_streams *streams, unsigned peer)
{
	const struct line *first = &streams->lines[peer * streams->n_lines];
	double heard_sec = streams->peers[peer].heard_sec;

	if (first->in.is_held)
		return 0.0;
	for (unsigned i = 0; i < streams->n_lines; i++)
		heard_sec = fmax(heard_sec, last_moved_sec(&first[i].reading));
	return psd_socket_now_sec() - heard_sec;
}

static bool has_chunks(const struct psd_streams *streams, const struct line *line)
{
	const struct peer *to = &streams->peers[line->peer];

	return to->n_given < to->n_chunks;
}

bool psd_streams_has_queue(const struct psd_streams *streams)
{
	for (unsigned i = 0; i < streams->n_all; i++) {
		const struct line *line = &streams->lines[i];

		if (line->carrier.fd >= 0 && (has_chunks(streams, line) || !psd_outlet_is_idle(&line->out) ||
					      line->sending.state == PSD_ERRAND_GIVEN))
			return true;
	}
	return false;
}

/* The next chunk is the line's, and its porter's where it has one and no small message waits. */
static void give_chunk(struct psd_streams *streams, struct line *line)
{
	struct peer *to = &streams->peers[line->peer];
	struct psd_wire_head head = to->head;
	const uint64_t chunk_bytes = psd_wire_chunk_bytes(head.length_bytes, to->n_given);
	struct psd_porter *porter = psd_outlet_is_idle(&line->out) ? porter_for(streams, line, chunk_bytes) : NULL;
	struct iovec cut[PSD_PIECES_MAX];
	unsigned n_cut;

	head.chunk = (uint32_t)to->n_given++;
	n_cut = psd_pieces_cut(to->pieces, to->n_pieces, head.chunk * PSD_WIRE_CHUNK_BYTES, chunk_bytes, cut);
	psd_outlet_start(porter ? &line->chunk : &line->out, &head, to->tag, head.chunk == 0 ? streams->tag_bytes : 0,
			 cut, n_cut);
	if (!porter)
		return;
	line->sending.carrier = line->carrier;
	line->sending.carrier.has_more = false;
	line->sending.out = &line->chunk;
	psd_porter_give(porter, &line->sending);
}

static void take_left(struct psd_streams *streams, unsigned peer)
{
	struct peer *to = &streams->peers[peer];

	if (++to->n_left == to->n_chunks)
		streams->owner.left(streams->owner.context, peer);
}

/* Each line takes a chunk in its turn: the line that has one now is sure of another if all others can have one, too. */
static bool sends_again(const struct psd_streams *streams, const struct line *line)
{
	const struct peer *to = &streams->peers[line->peer];

	return to->n_chunks - to->n_given >= streams->n_lines;
}

/* Sends once. *has_more: the transport may take more at once. */
static enum psd_status flush_line(struct psd_streams *streams, struct line *line, bool *has_more, struct psd_error *err)
{
	bool has_left = false, is_tensor;
	ssize_t sent;

	*has_more = false;
	if (line->carrier.fd < 0 || line->sending.state == PSD_ERRAND_GIVEN)
		return PSD_OK;
	if (!line->out.is_active && !line->chunk.is_active && has_chunks(streams, line))
		give_chunk(streams, line);
	if (psd_outlet_is_idle(&line->out) || line->sending.state == PSD_ERRAND_GIVEN)
		return PSD_OK;
	is_tensor = line->out.is_active;
	line->carrier.has_more = is_tensor && sends_again(streams, line);
	sent = psd_outlet_send(&line->out, &line->carrier, &has_left);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return PSD_OK;
	if (sent < 0) {
		/* what the peer said before it went may explain it: reading comes first */
		return errno == EPIPE || errno == ECONNRESET ? PSD_OK : lose(streams, line, errno, err);
	}
	streams->has_moved = streams->has_moved || (is_tensor && sent > 0);
	if (has_left)
		take_left(streams, line->peer);
	/* a full buffer ends it with EAGAIN at the next attempt, which epoll then watches */
	*has_more = (!psd_outlet_is_idle(&line->out) || has_chunks(streams, line)) &&
		    psd_outlet_is_between_messages(&line->out);
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
		const enum psd_status status = watch(streams, &streams->lines[i], err);

		if (status)
			return status;
	}
	return PSD_OK;
}

/* ---- in ---- */

/* NULL: none of its chunks was welcome yet, or it has only one. */
static struct arriving *find_arriving(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head)
{
	for (size_t i = 0; i < streams->n_arriving; i++) {
		struct arriving *arriving = &streams->arriving[i];

		if (arriving->peer == peer && arriving->head.op == head->op &&
		    arriving->head.iteration == head->iteration && arriving->head.part == head->part &&
		    arriving->head.length_bytes == head->length_bytes)
			return arriving;
	}
	return NULL;
}

/* NULL: no memory. */
static struct arriving *add_arriving(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head,
				     const struct psd_inlet *inlet)
{
	if (streams->n_arriving == streams->arriving_room) {
		const size_t room = 2 * streams->arriving_room + 8;
		struct arriving *grown = realloc(streams->arriving, room * sizeof(*grown));

		if (!grown)
			return NULL;
		streams->arriving = grown;
		streams->arriving_room = room;
	}
	streams->arriving[streams->n_arriving] = (struct arriving){
		.peer = peer, .head = *head, .inlet = *inlet, .n_missing = psd_wire_chunks(head->length_bytes)};
	return &streams->arriving[streams->n_arriving++];
}

static void finish_chunk(struct psd_streams *streams, struct line *line)
{
	const struct psd_wire_head head = line->in.head;
	struct arriving *arriving =
		psd_wire_chunks(head.length_bytes) > 1 ? find_arriving(streams, line->peer, &head) : NULL;
	uint8_t tag[PSD_WIRE_TAG_BYTES];

	memcpy(tag, line->in.bytes + PSD_WIRE_HEAD_BYTES, sizeof(tag));
	if (arriving && head.chunk == 0)
		memcpy(arriving->tag, tag, sizeof(tag));
	psd_inflow_reset(&line->in);
	if (arriving && --arriving->n_missing > 0)
		return;
	if (arriving) {
		memcpy(tag, arriving->tag, sizeof(tag));
		*arriving = streams->arriving[--streams->n_arriving];
	}
	tell(streams, line->peer, &head, tag);
}

/* A whole header is there: where does what it announces go? */
static enum psd_welcome find_inlet(struct psd_streams *streams, const struct line *line, struct psd_inlet *whole,
				   struct psd_error *err)
{
	const struct psd_wire_head *head = &line->in.head;
	const bool is_single = head->kind != PSD_WIRE_DATA || psd_wire_chunks(head->length_bytes) == 1;
	const struct arriving *arriving = is_single ? NULL : find_arriving(streams, line->peer, head);
	enum psd_welcome welcome;

	if (arriving) {
		*whole = arriving->inlet;
		return PSD_WELCOME_NOW;
	}
	*whole = (struct psd_inlet){.n_pieces = 0};
	welcome = streams->owner.expect(streams->owner.context, line->peer, head, whole, err);
	assert(welcome != PSD_WELCOME_NOW ||
	       psd_pieces_bytes(whole->pieces, whole->n_pieces) == psd_inlet_widening(whole) * head->length_bytes);
	if (welcome == PSD_WELCOME_NOW && !is_single && !add_arriving(streams, line->peer, head, whole)) {
		psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for arrivals");
		return PSD_WELCOME_REFUSED;
	}
	return welcome;
}

/* A single connection brings the rest of a message. Of several, any may. */
static uint64_t bytes_behind(const struct psd_streams *streams, const struct psd_wire_head *head)
{
	const uint64_t end_byte = (head->chunk + UINT64_C(1)) * PSD_WIRE_CHUNK_BYTES;

	return streams->n_lines == 1 && end_byte < head->length_bytes ? head->length_bytes - end_byte : 0;
}

/* To the line's porter, where that is worth it. */
static void give_reading(struct psd_streams *streams, struct line *line)
{
	struct psd_porter *porter = porter_for(streams, line, psd_inflow_missing_bytes(&line->in));

	if (!porter)
		return;
	if (line->has_low_water)
		line->carrier.transport->set_low_water(&line->carrier, 1);
	line->has_low_water = false;
	line->reading.carrier = line->carrier;
	line->reading.in = &line->in;
	psd_porter_give(porter, &line->reading);
}

static enum psd_status open_chunk(struct psd_streams *streams, struct line *line, struct psd_error *err)
{
	const struct psd_wire_head *head = &line->in.head;
	struct psd_inlet whole, inlet;
	unsigned widening;

	switch (find_inlet(streams, line, &whole, err)) {
	case PSD_WELCOME_REFUSED: return err->status;
	case PSD_WELCOME_LATER: line->in.is_held = true; return PSD_OK;
	case PSD_WELCOME_NOW: break;
	}
	widening = psd_inlet_widening(&whole);
	inlet = whole;
	inlet.n_pieces = psd_pieces_cut(whole.pieces, whole.n_pieces, widening * (head->chunk * PSD_WIRE_CHUNK_BYTES),
					widening * psd_wire_chunk_bytes(head->length_bytes, head->chunk), inlet.pieces);
	psd_inflow_open(&line->in, &inlet);
	line->coming_bytes = bytes_behind(streams, head);
	if (psd_inflow_is_complete(&line->in))
		finish_chunk(streams, line);
	else
		give_reading(streams, line);
	return PSD_OK;
}

static ssize_t read_head(struct psd_streams *streams, struct line *line, enum psd_status *status, struct psd_error *err)
{
	struct psd_error cause;
	const ssize_t n_read = psd_inflow_read_head(&line->in, &line->carrier, streams->tag_bytes, status, &cause);

	if (n_read > 0 && *status)
		*status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "host %u %s", line->peer, cause.text);
	else if (n_read > 0 && line->in.has_head)
		*status = open_chunk(streams, line, err);
	return n_read;
}

static ssize_t read_payload(struct psd_streams *streams, struct line *line)
{
	const ssize_t n_read = psd_inflow_read(&line->in, &line->carrier, READ_ONCE_BYTES, streams->scratch);

	streams->has_moved = streams->has_moved || n_read > 0;
	if (n_read > 0 && psd_inflow_is_complete(&line->in))
		finish_chunk(streams, line);
	return n_read;
}

static void set_low_water(const struct psd_streams *streams, struct line *line)
{
	uint64_t missing_bytes;
	bool has;

	if (line->carrier.fd < 0 || line->reading.state == PSD_ERRAND_GIVEN)
		return;
	missing_bytes = line->in.has_inlet ? psd_inflow_missing_bytes(&line->in) : 0;
	has = missing_bytes + line->coming_bytes >= streams->low_water_bytes;

	if (has == line->has_low_water)
		return;
	line->has_low_water = has;
	line->carrier.transport->set_low_water(&line->carrier, has ? streams->low_water_bytes : 1);
}

static enum psd_status read_line(struct psd_streams *streams, struct line *line, struct psd_error *err)
{
	enum psd_status status = PSD_OK;
	size_t n_bytes = 0;

	while (!status && line->carrier.fd >= 0 && reads(line) && n_bytes < READ_ONCE_BYTES) {
		const ssize_t n_read =
			line->in.has_inlet ? read_payload(streams, line) : read_head(streams, line, &status, err);

		if (n_read < 0 && errno == EAGAIN)
			break;
		if (n_read < 0 && errno == EINTR)
			continue;
		if (n_read <= 0)
			return lose(streams, line, n_read < 0 ? errno : 0, err);
		streams->peers[line->peer].heard_sec = psd_socket_now_sec();
		n_bytes += (size_t)n_read;
	}
	set_low_water(streams, line);
	return status;
}

static enum psd_status resume_line(struct psd_streams *streams, struct line *line, struct psd_error *err)
{
	const enum psd_status status = open_chunk(streams, line, err);

	streams->peers[line->peer].heard_sec = psd_socket_now_sec(); /* what it says now lay behind that */
	set_low_water(streams, line);
	return status;
}

enum psd_status psd_streams_resume(struct psd_streams *streams, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	do { /* what is taken at once may make room for what is held elsewhere */
		streams->has_told = false;
		for (unsigned i = 0; i < streams->n_all && !status; i++)
			if (streams->lines[i].carrier.fd >= 0 && streams->lines[i].in.is_held)
				status = resume_line(streams, &streams->lines[i], err);
	} while (!status && streams->has_told);
	return status;
}

/* A chunk has left, or is there. */
static enum psd_status take_errand(struct psd_streams *streams, struct line *line, const struct psd_errand *errand,
				   struct psd_error *err)
{
	const int error = errand->error_number;

	if (line->carrier.fd < 0)
		return PSD_OK;
	if (errand == &line->sending) {
		if (errand->is_complete)
			take_left(streams, line->peer);
		else if (error != EPIPE && error != ECONNRESET) /* as in flush_line() */
			return lose(streams, line, error, err);
		return PSD_OK;
	}
	streams->peers[line->peer].heard_sec = psd_socket_now_sec();
	if (!errand->is_complete)
		return lose(streams, line, error, err);
	finish_chunk(streams, line);
	return read_line(streams, line, err);
}

static enum psd_status take_errands(struct psd_streams *streams, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; streams->porters && i < streams->n_lines; i++) {
		struct psd_errand *errand = NULL;

		while (!status && (errand = psd_porter_take(streams->porters[i])))
			status = take_errand(streams, &streams->lines[errand->number], errand, err);
	}
	return status;
}

static enum psd_status take_event(struct psd_streams *streams, const struct epoll_event *event, struct psd_error *err)
{
	struct line *line;
	uint64_t count;

	if (event->data.u32 == WAKE) {
		if (read(streams->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN && errno != EINTR)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot read a counter: %s", strerror(errno));
		return PSD_OK;
	}
	if (event->data.u32 == TIMER) {
		take_timer(streams);
		return PSD_OK;
	}
	line = &streams->lines[event->data.u32];
	if (line->carrier.fd < 0)
		return PSD_OK;
	line->carrier.transport->hear(&line->carrier);
	if (line->in.is_held && (event->events & (EPOLLHUP | EPOLLERR)))
		return lose(streams, line, 0, err); /* nobody leaves before all has been taken from it */
	return event->events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? read_line(streams, line, err) : PSD_OK;
}

/* Whether some line has what epoll will not tell of; the timer rings when one will. */
static bool ask_ready(struct psd_streams *streams)
{
	bool is_any = false;

	for (unsigned i = 0; i < streams->n_all; i++) {
		struct line *line = &streams->lines[i];

		line->is_ready = line->carrier.fd >= 0 &&
				 line->carrier.transport->is_ready(&line->carrier, reads(line), sends(line));
		is_any = is_any || line->is_ready;
		if (line->carrier.fd >= 0 && line->carrier.transport->again_sec)
			psd_streams_wake_at(
				streams, line->carrier.transport->again_sec(&line->carrier, reads(line), sends(line)));
	}
	if (streams->owner.due_sec)
		psd_streams_wake_at(streams, streams->owner.due_sec(streams->owner.context));
	return is_any;
}

/* Flushing looks at all that may be sent by itself. */
static enum psd_status read_ready(struct psd_streams *streams, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < streams->n_all && !status; i++)
		if (streams->lines[i].is_ready && reads(&streams->lines[i]))
			status = read_line(streams, &streams->lines[i], err);
	return status;
}

/* What socket threads move counts at once, not when a chunk is through: on a slow link that is late. */
static void hear_porters(struct psd_streams *streams)
{
	double newest_sec = streams->moved_sec;

	for (unsigned i = 0; streams->porters && i < streams->n_all; i++) {
		const struct line *line = &streams->lines[i];

		newest_sec = fmax(newest_sec, fmax(last_moved_sec(&line->sending), last_moved_sec(&line->reading)));
	}
	streams->has_moved = streams->has_moved || newest_sec > streams->moved_sec;
	streams->moved_sec = newest_sec;
}

enum psd_status psd_streams_turn(struct psd_streams *streams, int within_ms, bool *has_moved, struct psd_error *err)
{
	struct epoll_event events[MAX_EVENTS];
	const bool is_ready = ask_ready(streams);
	const int n_events = epoll_wait(streams->epoll_fd, events, MAX_EVENTS, is_ready ? 0 : within_ms);
	enum psd_status status = PSD_OK;

	streams->has_moved = streams->has_told = false;
	if (n_events < 0 && errno != EINTR)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot wait for connections: %s", strerror(errno));
	for (int e = 0; e < n_events && !status; e++)
		status = take_event(streams, &events[e], err);
	if (!status)
		status = take_errands(streams, err);
	if (!status && is_ready)
		status = read_ready(streams, err);
	if (!status)
		status = tell_due(streams, err);
	if (!status && streams->has_told)
		status = psd_streams_resume(streams, err);
	if (!status)
		status = psd_streams_flush(streams, err);
	hear_porters(streams);
	*has_moved = streams->has_moved;
	return status;
}
