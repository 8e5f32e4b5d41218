/* A carrier without tokens says when it may continue; its descriptor is not watched until then. */
#include "real/net/shaped.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "real/net/segments.h"
#include "real/net/socket.h"

enum {
	MIN_GRANT_BYTES = 16 * 1024, /* worth a system call */
	PACKET_BYTES = 1448,
	MOST_PIECES = 1 + PSD_SEGMENTS_MAX,
};

#define GRANT_SEC      500e-6 /* duration of a burst on the link */
#define MOST_GRANT_SEC 1e-3   /* a 16 KiB grant would take longer at low rates */
/* Time for which an idle host saves its rate: 4 % of 100 ms. If threads wait for a core, one is late by up to a
 * scheduler's slice (real/cluster/emulation.c), and loses the rate that it cannot save. Four nodes of a parameter
 * server at 40 Mbit/s, two busy cores: five runs with 2 ms took 0.35 to 0.75 s an iteration, five in turn with 4 ms
 * 0.32 to 0.38 s. */
#define SAVED_SEC 4e-3

/* State of one carrier. */
struct shaped {
	struct psd_carrier inner; /* on the same descriptor */
	struct psd_shaper *shaper;
	double send_sec, read_sec; /* earliest time; 0: now */
};

static uint64_t saved_bytes(double rate_bps, double grant_bytes)
{
	return (uint64_t)fmax(rate_bps / 8 * SAVED_SEC, 2 * grant_bytes);
}

void psd_shaper_init(struct psd_shaper *shaper, double send_bps, double receive_bps)
{
	const double bytes_per_sec = fmin(send_bps, receive_bps) / 8;
	const double worth_bytes = fmax(bytes_per_sec * GRANT_SEC, MIN_GRANT_BYTES);
	const double grant_bytes = fmax(fmin(worth_bytes, bytes_per_sec * MOST_GRANT_SEC), PACKET_BYTES);
	const double now_sec = psd_socket_now_sec();

	shaper->grant_bytes = (size_t)grant_bytes;
	shaper->clock_sec = psd_socket_now_sec;
	psd_bucket_init(&shaper->sends, send_bps, saved_bytes(send_bps, grant_bytes), now_sec);
	psd_bucket_init(&shaper->reads, receive_bps, saved_bytes(receive_bps, grant_bytes), now_sec);
}

typedef ssize_t move_fn(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);

/* Calls `move` of the inner carrier with no more bytes than the bucket grants. */
static ssize_t move_granted(struct shaped *shaped, move_fn *move, struct psd_bucket *bucket, double *again_sec,
			    const struct iovec segments[], unsigned n_segments)
{
	const uint64_t wanted_bytes = psd_segments_bytes(segments, n_segments);
	const uint64_t most_bytes =
		wanted_bytes < shaped->shaper->grant_bytes ? wanted_bytes : shaped->shaper->grant_bytes;
	const double now_sec = shaped->shaper->clock_sec(),
		     ready_sec = psd_bucket_ready_sec(bucket, most_bytes, now_sec);
	struct iovec cut[MOST_PIECES];

	*again_sec = ready_sec > now_sec ? ready_sec : 0.0;
	if (*again_sec > 0.0) {
		errno = EAGAIN;
		return -1;
	}
	const uint64_t granted_bytes = psd_bucket_take(bucket, most_bytes, now_sec);
	const ssize_t n_moved =
		move(&shaped->inner, cut, psd_segments_cut(segments, n_segments, 0, granted_bytes, cut));
	const int error = errno;
	psd_bucket_give_back(bucket, granted_bytes - (n_moved > 0 ? (uint64_t)n_moved : 0));
	errno = error;
	return n_moved;
}

static ssize_t send_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct shaped *shaped = carrier->own;

	shaped->inner.has_more = carrier->has_more;
	return move_granted(shaped, shaped->inner.transport->send, &shaped->shaper->sends, &shaped->send_sec, segments,
			    n_segments);
}

static ssize_t receive_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct shaped *shaped = carrier->own;

	return move_granted(shaped, shaped->inner.transport->receive, &shaped->shaper->reads, &shaped->read_sec,
			    segments, n_segments);
}

static uint32_t events(const struct psd_carrier *carrier, bool reads, bool sends)
{
	const struct shaped *shaped = carrier->own;

	return shaped->inner.transport->events(&shaped->inner, reads && shaped->read_sec <= 0.0,
					       sends && shaped->send_sec <= 0.0);
}

static double again_sec(const struct psd_carrier *carrier, bool reads, bool sends)
{
	const struct shaped *shaped = carrier->own;
	const double send_sec = sends && shaped->send_sec > 0.0 ? shaped->send_sec : INFINITY;
	const double read_sec = reads && shaped->read_sec > 0.0 ? shaped->read_sec : INFINITY;

	return fmin(send_sec, read_sec);
}

static bool is_ready(struct psd_carrier *carrier, bool reads, bool sends)
{
	struct shaped *shaped = carrier->own;
	const double sec = again_sec(carrier, reads, sends);

	return (isfinite(sec) && sec <= shaped->shaper->clock_sec()) ||
	       shaped->inner.transport->is_ready(&shaped->inner, reads && shaped->read_sec <= 0.0,
						 sends && shaped->send_sec <= 0.0);
}

static bool holds(const struct psd_carrier *carrier)
{
	const struct shaped *shaped = carrier->own;

	return psd_carrier_holds(&shaped->inner);
}

static void hear(struct psd_carrier *carrier)
{
	struct shaped *shaped = carrier->own;

	shaped->inner.transport->hear(&shaped->inner);
}

static void set_low_water(struct psd_carrier *carrier, size_t bytes)
{
	struct shaped *shaped = carrier->own;

	shaped->inner.transport->set_low_water(&shaped->inner, bytes);
}

static void limit_unsent(struct psd_carrier *carrier, size_t bytes)
{
	struct shaped *shaped = carrier->own;

	shaped->inner.transport->limit_unsent(&shaped->inner, bytes);
}

static void release(struct psd_carrier *carrier)
{
	struct shaped *shaped = carrier->own;

	shaped->inner.transport->release(&shaped->inner);
	free(shaped);
	carrier->own = NULL;
}

static const struct psd_transport transport_shaped = {
	.name = "shaped",
	.send = send_pieces,
	.receive = receive_pieces,
	.events = events,
	.is_ready = is_ready,
	.holds = holds,
	.again_sec = again_sec,
	.hear = hear,
	.set_low_water = set_low_water,
	.limit_unsent = limit_unsent,
	.release = release,
};

bool psd_shaped_wrap(struct psd_shaper *shaper, struct psd_carrier *carrier)
{
	struct shaped *shaped = calloc(1, sizeof(*shaped));

	if (!shaped)
		return false;
	*shaped = (struct shaped){.inner = *carrier, .shaper = shaper};
	carrier->transport = &transport_shaped;
	carrier->own = shaped;
	return true;
}
