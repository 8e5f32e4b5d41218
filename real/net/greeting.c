#include "real/net/greeting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void psd_greeting_release(struct psd_greeting *greeting)
{
	free(greeting->terms);
	*greeting = (struct psd_greeting){.n_bytes = 0};
}

/* Length of header and payload, without the terms. */
static size_t frame_bytes(const struct psd_greeting *greeting)
{
	return PSD_WIRE_HEAD_BYTES + (size_t)greeting->head.length_bytes;
}

/* End of the part whose length is known: header, then payload, then terms. */
static size_t known_bytes(const struct psd_greeting *greeting)
{
	if (greeting->n_bytes < PSD_WIRE_HEAD_BYTES)
		return PSD_WIRE_HEAD_BYTES;
	return frame_bytes(greeting) + (size_t)greeting->hello.terms_bytes;
}

bool psd_greeting_is_complete(const struct psd_greeting *greeting)
{
	return greeting->n_bytes == known_bytes(greeting);
}

struct iovec psd_greeting_room(struct psd_greeting *greeting)
{
	const size_t left_bytes = known_bytes(greeting) - greeting->n_bytes;

	if (greeting->terms)
		return (struct iovec){greeting->terms + (greeting->n_bytes - frame_bytes(greeting)), left_bytes};
	return (struct iovec){greeting->frame + greeting->n_bytes, left_bytes};
}

static enum psd_status take_head(struct psd_greeting *greeting, struct psd_error *err)
{
	static const uint8_t tls[] = {0x16, 0x03}; /* a handshake (RFC 8446, 5.1) */

	if (memcmp(greeting->frame, tls, sizeof(tls)) == 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "has a secret, this run has none: '--secret' must name the same bytes on all "
				     "hosts, or on none");
	PSD_TRY(psd_wire_decode(greeting->frame, &greeting->head, err));
	if (greeting->head.kind != PSD_WIRE_HELLO && greeting->head.kind != PSD_WIRE_FAILED)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "sent a message other than a greeting");
	return PSD_OK;
}

static enum psd_status take_frame(struct psd_greeting *greeting, struct psd_error *err)
{
	if (greeting->head.kind == PSD_WIRE_FAILED) {
		greeting->failed =
			psd_wire_decode_payload(PSD_WIRE_FAILED, greeting->frame + PSD_WIRE_HEAD_BYTES).failed;
		return PSD_OK;
	}
	struct psd_wire_hello hello =
		psd_wire_decode_payload(PSD_WIRE_HELLO, greeting->frame + PSD_WIRE_HEAD_BYTES).hello;
	if (hello.terms_bytes > PSD_GREETING_TERMS_MAX)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "sent terms of %" PRIu64 " bytes, at most %d are read",
				     hello.terms_bytes, PSD_GREETING_TERMS_MAX);
	greeting->terms = calloc(1, (size_t)hello.terms_bytes + 1);
	if (!greeting->terms)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	greeting->hello = hello;
	return PSD_OK;
}

enum psd_status psd_greeting_take(struct psd_greeting *greeting, size_t n_bytes, struct psd_error *err)
{
	greeting->n_bytes += n_bytes;
	if (greeting->n_bytes == PSD_WIRE_HEAD_BYTES)
		return take_head(greeting, err);
	if (greeting->n_bytes == frame_bytes(greeting))
		return take_frame(greeting, err);
	return PSD_OK;
}
