#include "real/net/frame.h"

#include <assert.h>
#include <string.h>

#include "real/net/socket.h"

enum psd_status psd_frame_send(const char *peer, int fd, enum psd_wire_kind kind, const uint8_t *payload,
			       size_t n_bytes, struct psd_error *err)
{
	const struct psd_wire_head head = {.kind = kind, .length_bytes = n_bytes};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_SMALL_BYTES];

	assert(n_bytes <= PSD_WIRE_SMALL_BYTES);
	psd_wire_encode(&head, bytes);
	memcpy(bytes + PSD_WIRE_HEAD_BYTES, payload, n_bytes);
	return psd_socket_send_small(fd, bytes, PSD_WIRE_HEAD_BYTES + n_bytes)
		       ? PSD_OK
		       : psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s has gone while hosts were joining", peer);
}

enum psd_status psd_frame_read(const char *peer, int fd, enum psd_wire_kind kind, uint8_t *payload, double until_sec,
			       struct psd_error *err)
{
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];
	struct psd_wire_head head;
	struct psd_error cause;
	enum psd_status status;

	assert(kind != PSD_WIRE_DATA); /* may be of any length */
	status = psd_socket_read_all(peer, fd, bytes, sizeof(bytes), until_sec, err);

	if (!status && psd_wire_decode(bytes, &head, &cause))
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s %s", peer, cause.text);
	if (!status && head.kind != kind && head.kind != PSD_WIRE_FAILED)
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				       "%s sent a message of kind %u while hosts were joining", peer,
				       (unsigned)head.kind);
	if (!status)
		status = psd_socket_read_all(peer, fd, payload, (size_t)head.length_bytes, until_sec, err);
	if (!status && head.kind == PSD_WIRE_FAILED)
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s", psd_wire_decode_failed(payload).words);
	return status;
}
