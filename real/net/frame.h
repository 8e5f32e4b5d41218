/* Small messages between hosts that are joining. Blocking functions send and receive one message at a time, over
 * connections that carry no other messages yet. Any thread. */
#ifndef PSD_REAL_FRAME_H
#define PSD_REAL_FRAME_H

#include <stddef.h>

#include "real/net/wire.h"

struct psd_secret;

/* Sends a small message over the socket fd. peer: name of the peer for error texts; secret: as in psd_mesh_options;
 * payload: the struct that psd_wire_encode_payload() accepts for this kind. PSD_ELOST: the peer has closed the
 * connection. */
enum psd_status psd_frame_send(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       const void *payload, struct psd_error *err) PSD_MUST_CHECK;
/* Waits for a message of this kind and decodes its payload. Parameters as in psd_frame_send(); until_sec: deadline
 * (psd_socket_now_sec()). PSD_ELOST: the peer has closed the connection, or the message has not arrived by the
 * deadline. PSD_ERUN: a message of another kind arrived. If the peer sends PSD_WIRE_FAILED, the function returns the
 * status and the text in that message. */
enum psd_status psd_frame_read(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       union psd_wire_payload *payload, double until_sec, struct psd_error *err) PSD_MUST_CHECK;

/* Waits until n_bytes bytes have been received, and stores them. Parameters as in psd_frame_read(). PSD_ELOST: the peer
 * has closed the connection, or the bytes have not arrived by the deadline until_sec. */
enum psd_status psd_frame_read_all(const char *peer, int fd, struct psd_secret *secret, uint8_t *bytes, size_t n_bytes,
				   double until_sec, struct psd_error *err) PSD_MUST_CHECK;

#endif
