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

#include "real/net/bucket.h"
#include "real/net/delay.h"
#include "real/net/pace.h"
#include "real/net/socket.h"

enum {
	READ_ONCE_BYTES = 1 << 20,  /* from one connection before the others have their turn */
	SHARE_FROM_BYTES = 1 << 18, /* messages from here on are shared by all lines */
	MIN_LOW_WATER_BYTES = 1 << 14,
	MAX_LOW_WATER_BYTES = 1 << 18,
	MIN_GRANT_BYTES = 16 * 1024, /* shaped here: worth a system call */
	/* Close to the link: what the kernel holds of a message beside what it sends. Without it the kernel takes whole
	 * messages, and what comes behind them finds the link free that is not. */
	UNSENT_BYTES = 1 << 16,
	MAX_EVENTS = 64,
};

#define GRANT_SEC 500e-6 /* shaped here: bytes pass in bursts of so much line time */
/* A link hands over a few kilobytes at a time, and waking up for each costs more than what is in them: of what is
 * missing of a payload, less than this much line time is not worth it. */
#define LOW_WATER_SEC 2e-3

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
	bool waits_to_send; /* for the rate, until the timer */
	bool waits_to_read;
};

struct peer {
	bool is_near;
	unsigned n_leaving; /* lines that still send shares of its message */
	double heard_sec;   /* when anything last came from it */
};

struct psd_streams {
	struct line *lines;
	struct peer *peers;
	unsigned n_peers, n_lines, n_all;
	int epoll_fd, wake_fd, timer_fd;
	struct psd_streams_owner owner;
	uint8_t *scratch; /* received floats on their way to a sum */
	bool has_moved;
	bool has_told; /* arrivals may have made room for what is held */

	uint64_t low_water_bytes; /* UINT64_MAX: none */
	bool has_rate;
	size_t grant_bytes;
	struct psd_bucket sends, reads;
	struct psd_pace pace;
	double latency_sec, had_latency_sec;
	struct psd_delay delay;
	double timer_sec; /* when it rings; INFINITY: never */
};

struct share {
	uint64_t first_byte, n_bytes;
};

/* Whole floats, but for what is left over in the last one. */
static struct share share_of(uint64_t message_bytes, unsigned shares, unsigned number)
{
	const uint64_t floats = message_bytes / sizeof(float);
	const uint64_t first = floats * number / shares * sizeof(float),
		       end = floats * (number + 1) / shares * sizeof(float);

	return (struct share){first, (number + 1 == shares ? message_bytes : end) - first};
}

unsigned psd_streams_shares(const struct psd_streams *streams, uint64_t message_bytes)
{
	return message_bytes >= SHARE_FROM_BYTES ? streams->n_lines : 1;
}

static unsigned line_number(const struct psd_streams *streams, const struct line *line)
{
	return (unsigned)(line - streams->lines);
}

static bool sends(const struct line *line)
{
	return !psd_outlet_is_idle(&line->out) && !line->waits_to_send;
}

static bool reads(const struct line *line)
{
	return !line->in.is_held && !line->waits_to_read;
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

static void set_rate(struct psd_streams *streams, double send_bps, double receive_bps)
{
	const double grant_bytes = fmax(fmin(send_bps, receive_bps) / 8 * GRANT_SEC, MIN_GRANT_BYTES);
	const double now_sec = psd_socket_now_sec();

	streams->has_rate = true;
	streams->grant_bytes = (size_t)grant_bytes;
	psd_bucket_init(&streams->sends, send_bps, 2 * streams->grant_bytes, now_sec);
	psd_bucket_init(&streams->reads, receive_bps, 2 * streams->grant_bytes, now_sec);
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
		streams->peers[p] = (struct peer){.is_near = options->is_near[p], .heard_sec = psd_socket_now_sec()};
	for (unsigned i = 0; i < streams->n_all; i++) {
		streams->lines[i].peer = i / streams->n_lines;
		streams->lines[i].carrier = options->carriers[i];
		if (options->is_close_to_link && options->carriers[i].fd >= 0)
			options->carriers[i].transport->limit_unsent(&streams->lines[i].carrier, UNSENT_BYTES);
	}
	streams->low_water_bytes = low_water_of(options->link_bps);
	if (options->has_rate)
		set_rate(streams, options->send_bps, options->receive_bps);
	return true;
}

enum psd_status psd_streams_open(struct psd_streams **streams, const struct psd_streams_options *options,
				 struct psd_error *err)
{
	struct psd_streams *opened = calloc(1, sizeof(*opened));
	int error;

	if (opened)
		*opened = (struct psd_streams){
			.n_peers = options->n_peers,
			.n_lines = options->n_lines,
			.n_all = options->n_peers * options->n_lines,
			.owner = options->owner,
			.epoll_fd = -1,
			.wake_fd = options->wake_fd,
			.timer_fd = -1,
			.pace = {.send_bps = options->pace_send_bps, .receive_bps = options->pace_receive_bps},
			.latency_sec = options->latency_sec,
			.had_latency_sec = options->had_latency_sec,
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
	*streams = opened;
	return PSD_OK;
}

void psd_streams_close(struct psd_streams *streams)
{
	if (!streams)
		return;
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
	psd_delay_release(&streams->delay);
	free(streams->scratch);
	free(streams);
}

static enum psd_status lose(struct psd_streams *streams, struct line *line, int error_number, struct psd_error *err)
{
	psd_carrier_close(&line->carrier); /* leaves epoll, too */
	return streams->owner.lost(streams->owner.context, line->peer, error_number, err);
}

/* ---- time: rates, pace and latency ---- */

void psd_streams_wake_at(struct psd_streams *streams, double sec)
{
	const struct itimerspec at = {.it_value = {(time_t)sec, 1 + (long)((sec - floor(sec)) * 999999998)}};

	if (sec >= streams->timer_sec)
		return;
	streams->timer_sec = sec;
	(void)timerfd_settime(streams->timer_fd, TFD_TIMER_ABSTIME, &at, NULL); /* fails for impossible times only */
}

static bool is_shaped(const struct psd_streams *streams, const struct line *line)
{
	return streams->has_rate && !streams->peers[line->peer].is_near;
}

/* Bytes that may pass now, at most wanted; 0: not before the timer. */
static size_t grant(struct psd_streams *streams, struct psd_bucket *bucket, uint64_t wanted_bytes)
{
	const uint64_t most = wanted_bytes < streams->grant_bytes ? wanted_bytes : streams->grant_bytes;
	const double now_sec = psd_socket_now_sec(), ready_sec = psd_bucket_ready_sec(bucket, most, now_sec);

	if (ready_sec <= now_sec)
		return psd_bucket_take(bucket, most, now_sec);
	psd_streams_wake_at(streams, ready_sec);
	return 0;
}

static bool is_paced(const struct psd_streams *streams)
{
	return streams->pace.send_bps > 0.0;
}

static bool is_told_at_once(const struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head)
{
	const bool is_tensor = head->kind == PSD_WIRE_DATA;

	return !is_tensor || streams->peers[peer].is_near ||
	       (streams->latency_sec <= streams->had_latency_sec && !is_paced(streams));
}

/* bytes: the connection's share */
static bool tell_later(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head, uint64_t bytes)
{
	const double there_sec = psd_socket_now_sec() + fmax(streams->latency_sec - streams->had_latency_sec, 0.0);
	const double paced_sec = is_paced(streams) ? psd_pace_receive(&streams->pace, bytes, head->length_bytes,
								      head->off_sec, streams->latency_sec)
						   : 0.0;
	const struct psd_arrival arrival = {fmax(there_sec, paced_sec), peer, *head};

	if (!psd_delay_add(&streams->delay, &arrival))
		return false;
	psd_streams_wake_at(streams, psd_delay_first(&streams->delay)->due_sec);
	return true;
}

static void tell(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head)
{
	streams->has_moved = streams->has_moved || head->kind != PSD_WIRE_ALIVE || head->part > 0;
	streams->has_told = true;
	streams->owner.arrived(streams->owner.context, peer, head);
}

static void tell_due(struct psd_streams *streams)
{
	const struct psd_arrival *first;

	while ((first = psd_delay_first(&streams->delay)) && first->due_sec <= psd_socket_now_sec()) {
		const struct psd_arrival due = *first;

		psd_delay_drop_first(&streams->delay);
		tell(streams, due.peer, &due.head);
	}
	if (first)
		psd_streams_wake_at(streams, first->due_sec);
}

/* The timer has rung: everybody may try again, and sets it again if that was too early. */
static void take_timer(struct psd_streams *streams)
{
	uint64_t count;

	if (read(streams->timer_fd, &count, sizeof(count)) < 0)
		return;
	streams->timer_sec = INFINITY;
	for (unsigned i = 0; i < streams->n_all; i++)
		streams->lines[i].waits_to_send = streams->lines[i].waits_to_read = false;
}

/* ---- out ---- */

void psd_streams_send(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head,
		      const struct iovec pieces[], unsigned n_pieces)
{
	const unsigned shares = psd_streams_shares(streams, head->length_bytes);
	struct psd_wire_head paced = *head;

	assert(streams->peers[peer].n_leaving == 0);
	if (is_paced(streams) && !streams->peers[peer].is_near)
		paced.off_sec = psd_pace_send(&streams->pace, head->length_bytes, psd_socket_now_sec());
	for (unsigned s = 0; s < shares; s++) {
		const struct share share = share_of(head->length_bytes, shares, s);
		struct iovec cut[PSD_PIECES_MAX];

		psd_outlet_start(&streams->lines[peer * streams->n_lines + s].out, &paced, cut,
				 psd_pieces_cut(pieces, n_pieces, share.first_byte, share.n_bytes, cut));
	}
	streams->peers[peer].n_leaving = shares;
}

bool psd_streams_send_small(struct psd_streams *streams, unsigned peer, const struct psd_wire_head *head,
			    const uint8_t *payload)
{
	return psd_outlet_add_small(&streams->lines[peer * streams->n_lines].out, head, payload);
}

double psd_streams_silent_sec(const struct psd_streams *streams, unsigned peer)
{
	return streams->lines[peer * streams->n_lines].in.is_held
		       ? 0.0
		       : psd_socket_now_sec() - streams->peers[peer].heard_sec;
}

bool psd_streams_has_queue(const struct psd_streams *streams)
{
	for (unsigned i = 0; i < streams->n_all; i++)
		if (streams->lines[i].carrier.fd >= 0 && !psd_outlet_is_idle(&streams->lines[i].out))
			return true;
	return false;
}

/* Sends once. *has_more: the kernel may take more at once. */
static enum psd_status flush_line(struct psd_streams *streams, struct line *line, bool *has_more, struct psd_error *err)
{
	const bool is_tensor = line->out.is_active;
	size_t limit_bytes = SIZE_MAX;
	bool has_left = false;
	ssize_t sent;

	*has_more = false;
	if (line->carrier.fd < 0 || line->waits_to_send || psd_outlet_is_idle(&line->out))
		return PSD_OK;
	if (is_shaped(streams, line)) {
		limit_bytes = grant(streams, &streams->sends, psd_outlet_waiting_bytes(&line->out));
		line->waits_to_send = limit_bytes == 0;
		if (line->waits_to_send)
			return PSD_OK;
	}
	sent = psd_outlet_send(&line->out, &line->carrier, limit_bytes, &has_left);
	if (is_shaped(streams, line))
		psd_bucket_give_back(&streams->sends, limit_bytes - (sent > 0 ? (size_t)sent : 0));
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return PSD_OK;
	if (sent < 0) {
		/* what the peer said before it went may explain it: reading comes first */
		return errno == EPIPE || errno == ECONNRESET ? PSD_OK : lose(streams, line, errno, err);
	}
	streams->has_moved = streams->has_moved || (is_tensor && sent > 0);
	if (has_left && --streams->peers[line->peer].n_leaving == 0)
		streams->owner.left(streams->owner.context, line->peer);
	/* a full buffer ends it with EAGAIN at the next attempt, which epoll then watches */
	*has_more = !psd_outlet_is_idle(&line->out) &&
		    (psd_outlet_is_between_messages(&line->out) || is_shaped(streams, line));
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

/* Of a message of which the connection has one. */
static struct share share_on(const struct psd_streams *streams, const struct line *line, uint64_t message_bytes)
{
	return share_of(message_bytes, psd_streams_shares(streams, message_bytes),
			line_number(streams, line) % streams->n_lines);
}

static enum psd_status finish_share(struct psd_streams *streams, struct line *line, struct psd_error *err)
{
	const struct psd_wire_head head = line->in.head;
	const struct share share = share_on(streams, line, head.length_bytes);

	psd_inflow_reset(&line->in);
	if (is_told_at_once(streams, line->peer, &head))
		tell(streams, line->peer, &head);
	else if (!tell_later(streams, line->peer, &head, share.n_bytes))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for arrivals");
	return PSD_OK;
}

/* A whole header is there. */
static enum psd_status ask_owner(struct psd_streams *streams, struct line *line, struct psd_error *err)
{
	const struct psd_wire_head *head = &line->in.head;
	const unsigned number = line_number(streams, line) % streams->n_lines;
	struct psd_inlet whole = {.n_pieces = 0}, inlet;
	struct share share;
	unsigned widening;

	if (number >= psd_streams_shares(streams, head->length_bytes))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "host %u sent a message on connection %u that goes on 0", line->peer, number);
	switch (streams->owner.expect(streams->owner.context, line->peer, head, &whole, err)) {
	case PSD_WELCOME_REFUSED: return PSD_ERUN;
	case PSD_WELCOME_LATER: line->in.is_held = true; return PSD_OK;
	case PSD_WELCOME_NOW: break;
	}
	widening = psd_inlet_widening(&whole);
	assert(psd_pieces_bytes(whole.pieces, whole.n_pieces) == widening * head->length_bytes);
	share = share_on(streams, line, head->length_bytes);
	inlet = whole;
	inlet.n_pieces = psd_pieces_cut(whole.pieces, whole.n_pieces, widening * share.first_byte,
					widening * share.n_bytes, inlet.pieces);
	psd_inflow_open(&line->in, &inlet);
	return psd_inflow_is_complete(&line->in) ? finish_share(streams, line, err) : PSD_OK;
}

static ssize_t read_head(struct psd_streams *streams, struct line *line, enum psd_status *status, struct psd_error *err)
{
	struct psd_error cause;
	const ssize_t n_read = psd_inflow_read_head(&line->in, &line->carrier, status, &cause);

	if (n_read > 0 && *status)
		*status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "host %u %s", line->peer, cause.text);
	else if (n_read > 0 && line->in.has_head)
		*status = ask_owner(streams, line, err);
	return n_read;
}

/* Returns as the carrier; EAGAIN also when the rate does not allow more now. */
static ssize_t read_payload(struct psd_streams *streams, struct line *line, enum psd_status *status,
			    struct psd_error *err)
{
	size_t limit_bytes = READ_ONCE_BYTES;
	ssize_t n_read;

	if (is_shaped(streams, line)) {
		limit_bytes = grant(streams, &streams->reads, streams->grant_bytes);
		line->waits_to_read = limit_bytes == 0;
		if (line->waits_to_read) {
			errno = EAGAIN;
			return -1;
		}
	}
	n_read = psd_inflow_read(&line->in, &line->carrier, limit_bytes, streams->scratch);
	if (is_shaped(streams, line)) {
		const int error = errno;

		psd_bucket_give_back(&streams->reads, limit_bytes - (n_read > 0 ? (size_t)n_read : 0));
		errno = error;
	}
	streams->has_moved = streams->has_moved || n_read > 0;
	if (n_read > 0 && psd_inflow_is_complete(&line->in))
		*status = finish_share(streams, line, err);
	return n_read;
}

static void set_low_water(const struct psd_streams *streams, struct line *line)
{
	const bool has = line->in.has_inlet && psd_inflow_missing_bytes(&line->in) >= streams->low_water_bytes;

	if (has == line->has_low_water || line->carrier.fd < 0)
		return;
	line->has_low_water = has;
	line->carrier.transport->set_low_water(&line->carrier, has ? streams->low_water_bytes : 1);
}

static enum psd_status read_line(struct psd_streams *streams, struct line *line, struct psd_error *err)
{
	enum psd_status status = PSD_OK;
	size_t n_bytes = 0;

	while (!status && line->carrier.fd >= 0 && !line->in.is_held && n_bytes < READ_ONCE_BYTES) {
		const ssize_t n_read = line->in.has_inlet ? read_payload(streams, line, &status, err)
							  : read_head(streams, line, &status, err);

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
	const enum psd_status status = ask_owner(streams, line, err);

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

/* Whether some line has what epoll will not tell of. */
static bool ask_ready(struct psd_streams *streams)
{
	bool is_any = false;

	for (unsigned i = 0; i < streams->n_all; i++) {
		struct line *line = &streams->lines[i];

		line->is_ready = line->carrier.fd >= 0 &&
				 line->carrier.transport->is_ready(&line->carrier, reads(line), sends(line));
		is_any = is_any || line->is_ready;
	}
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
	if (!status && is_ready)
		status = read_ready(streams, err);
	if (!status)
		tell_due(streams);
	if (!status && streams->has_told)
		status = psd_streams_resume(streams, err);
	if (!status)
		status = psd_streams_flush(streams, err);
	*has_moved = streams->has_moved;
	return status;
}
