/* Small messages between hosts that are joining: sent and received one at a time, by blocking calls, over connections
 * that carry nothing else yet. Any thread. */
#ifndef PSD_REAL_FRAME_H
#define PSD_REAL_FRAME_H

#include <stddef.h>

#include "real/net/wire.h"

struct psd_secret;

/* Sends a small message over descriptor fd. peer: name of the peer in error texts; secret: as in psd_mesh_options;
 * payload: the struct that psd_wire_encode_payload() takes for this kind. PSD_ELOST: the peer has closed the
 * connection. */
enum psd_status psd_frame_send(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       const void *payload, struct psd_error *err) PSD_MUST_CHECK;
/* Waits for a message of this kind and decodes its payload. PSD_ELOST: the peer has closed the connection, or is silent
 * until until_sec (psd_socket_now_sec()). PSD_ERUN: a message of another kind came. If the peer sends that it gives up,
 * the result is the status and the text that it sent. */
enum psd_status psd_frame_read(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       union psd_wire_payload *payload, double until_sec, struct psd_error *err) PSD_MUST_CHECK;

/* Waits until n_bytes have been received, and stores them. PSD_ELOST: the peer has closed the connection, or is silent
 * until until_sec (psd_socket_now_sec()). */
enum psd_status psd_frame_read_all(const char *peer, int fd, struct psd_secret *secret, uint8_t *bytes, size_t n_bytes,
				   double until_sec, struct psd_error *err) PSD_MUST_CHECK;

#endif
