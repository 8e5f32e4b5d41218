#include "real/net/frame.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "real/net/secret.h"
#include "real/net/socket.h"

enum psd_status psd_frame_send(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       const void *payload, struct psd_error *err)
{
	const size_t n_bytes = psd_wire_payload_bytes(kind);
	const struct psd_wire_head head = {.kind = kind, .length_bytes = n_bytes};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_SMALL_BYTES];

	psd_wire_encode(&head, bytes);
	psd_wire_encode_payload(kind, payload, bytes + PSD_WIRE_HEAD_BYTES);
	return psd_secret_send(secret, fd, bytes, PSD_WIRE_HEAD_BYTES + n_bytes)
		       ? PSD_OK
		       : psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s has gone while hosts were joining", peer);
}

enum psd_status psd_frame_read_all(const char *peer, int fd, struct psd_secret *secret, uint8_t *bytes, size_t n_bytes,
				   double until_sec, struct psd_error *err)
{
	for (size_t at = 0; at < n_bytes;) {
		const ssize_t n_read = psd_secret_receive(secret, fd, bytes + at, n_bytes - at);

		if (n_read == 0)
			return psd_error_set(err, PSD_ELOST, PSD_NOWHERE,
					     "%s closed the connection while hosts were joining", peer);
		if (n_read < 0 && errno != EAGAIN && errno != EINTR)
			return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s: %s", peer, strerror(errno));
		at += n_read > 0 ? (size_t)n_read : 0;
		if (n_read < 0 && !psd_socket_await(fd, until_sec))
			return psd_error_set(
				err, PSD_ELOST, PSD_NOWHERE,
				"%s has joined this host and does not answer: it has stopped, or waits for a host "
				"that it cannot reach",
				peer);
	}
	return PSD_OK;
}

enum psd_status psd_frame_read(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       union psd_wire_payload *payload, double until_sec, struct psd_error *err)
{
	uint8_t bytes[PSD_WIRE_SMALL_BYTES];
	struct psd_wire_head head;
	struct psd_error cause;

	assert(kind != PSD_WIRE_DATA); /* its length has no limit */
	PSD_TRY(psd_frame_read_all(peer, fd, secret, bytes, PSD_WIRE_HEAD_BYTES, until_sec, err));
	if (psd_wire_decode(bytes, &head, &cause))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s %s", peer, cause.text);
	if (head.kind != kind && head.kind != PSD_WIRE_FAILED)
		return psd_error_set(
			err, PSD_ERUN, PSD_NOWHERE,
			"%s sent an unexpected message (kind %u) while hosts were joining: start all hosts again", peer,
			(unsigned)head.kind);
	PSD_TRY(psd_frame_read_all(peer, fd, secret, bytes, (size_t)head.length_bytes, until_sec, err));
	*payload = psd_wire_decode_payload(head.kind, bytes);
	if (head.kind == PSD_WIRE_FAILED)
		return psd_error_set(err, psd_wire_status(&head), PSD_NOWHERE, "%s", payload->failed.words);
	return PSD_OK;
}
