/* Each connection is two small state machines, an outlet and an inflow; this is what drives them. */
#define _GNU_SOURCE
#include "real/net/streams_parts.h"

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

static unsigned line_number(const struct psd_streams *streams, const struct psd_line *line)
{
	return (unsigned)(line - streams->lines);
}

enum psd_status psd_streams_watch(struct psd_streams *streams, struct psd_line *line, struct psd_error *err)
{
	struct psd_carrier *carrier = &line->carrier;
	const uint32_t events =
		carrier->fd < 0 ? 0 : carrier->transport->events(carrier, psd_line_reads(line), psd_line_sends(line));
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
struct psd_porter *psd_streams_porter(const struct psd_streams *streams, const struct psd_line *line, uint64_t bytes)
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

enum psd_status psd_streams_lose(struct psd_streams *streams, struct psd_line *line, int error_number,
				 struct psd_error *err)
{
	struct psd_porter *porter = psd_streams_porter(streams, line, ERRAND_BYTES);

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

/* ---- a turn ---- */

/* A chunk has left, or is there. */
static enum psd_status take_errand(struct psd_streams *streams, struct psd_line *line, const struct psd_errand *errand,
				   struct psd_error *err)
{
	const int error = errand->error_number;

	if (line->carrier.fd < 0)
		return PSD_OK;
	if (errand == &line->sending) {
		if (errand->is_complete)
			psd_streams_take_left(streams, line->peer);
		else if (error != EPIPE && error != ECONNRESET) /* as in flush_line() */
			return psd_streams_lose(streams, line, error, err);
		return PSD_OK;
	}
	streams->peers[line->peer].heard_sec = psd_socket_now_sec();
	if (!errand->is_complete)
		return psd_streams_lose(streams, line, error, err);
	psd_streams_finish_chunk(streams, line);
	return psd_streams_read_line(streams, line, err);
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
	struct psd_line *line;
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
		return psd_streams_lose(streams, line, 0, err); /* nobody leaves before all has been taken from it */
	return event->events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? psd_streams_read_line(streams, line, err) : PSD_OK;
}

/* Whether some line has what epoll will not tell of; the timer rings when one will. */
static bool ask_ready(struct psd_streams *streams)
{
	bool is_any = false;

	for (unsigned i = 0; i < streams->n_all; i++) {
		struct psd_line *line = &streams->lines[i];

		line->is_ready =
			line->carrier.fd >= 0 &&
			line->carrier.transport->is_ready(&line->carrier, psd_line_reads(line), psd_line_sends(line));
		is_any = is_any || line->is_ready;
		if (line->carrier.fd >= 0 && line->carrier.transport->again_sec)
			psd_streams_wake_at(streams,
					    line->carrier.transport->again_sec(&line->carrier, psd_line_reads(line),
									       psd_line_sends(line)));
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
		if (streams->lines[i].is_ready && psd_line_reads(&streams->lines[i]))
			status = psd_streams_read_line(streams, &streams->lines[i], err);
	return status;
}

/* What socket threads move counts at once, not when a chunk is through: on a slow link that is late. */
static void hear_porters(struct psd_streams *streams)
{
	double newest_sec = streams->moved_sec;

	for (unsigned i = 0; streams->porters && i < streams->n_all; i++) {
		const struct psd_line *line = &streams->lines[i];

		newest_sec = fmax(newest_sec,
				  fmax(psd_errand_moved_sec(&line->sending), psd_errand_moved_sec(&line->reading)));
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
