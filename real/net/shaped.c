/* A carrier without tokens says when it may continue; its descriptor is not watched until then. */
#include "real/net/shaped.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "real/net/segments.h"
#include "real/net/socket.h"

enum { MOST_PIECES = 1 + PSD_SEGMENTS_MAX };

/* State of one carrier. */
struct shaped {
	struct psd_carrier inner; /* on the same descriptor */
	struct psd_shaper *shaper;
	double send_sec, read_sec; /* earliest time; 0: now */
};

typedef ssize_t move_fn(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);

/* Calls `move` of the inner carrier with no more bytes than the limit grants. */
static ssize_t move_granted(struct shaped *shaped, move_fn *move, bool sends, double *again_sec,
			    const struct iovec segments[], unsigned n_segments)
{
	struct psd_rate_limit *limit = shaped->shaper->limit;
	double ready_sec;
	const uint64_t granted_bytes = psd_rate_limit_take(limit, sends, psd_segments_bytes(segments, n_segments),
							   shaped->shaper->clock_sec(), &ready_sec);
	struct iovec cut[MOST_PIECES];

	*again_sec = granted_bytes > 0 ? 0.0 : ready_sec;
	if (granted_bytes == 0) {
		errno = EAGAIN;
		return -1;
	}
	const ssize_t n_moved =
		move(&shaped->inner, cut, psd_segments_cut(segments, n_segments, 0, granted_bytes, cut));
	const int error = errno;
	psd_rate_limit_give_back(limit, sends, granted_bytes - (n_moved > 0 ? (uint64_t)n_moved : 0));
	errno = error;
	return n_moved;
}

static ssize_t send_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct shaped *shaped = carrier->own;

	shaped->inner.has_more = carrier->has_more;
	return move_granted(shaped, shaped->inner.transport->send, true, &shaped->send_sec, segments, n_segments);
}

static ssize_t receive_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct shaped *shaped = carrier->own;

	return move_granted(shaped, shaped->inner.transport->receive, false, &shaped->read_sec, segments, n_segments);
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
