/* Small messages between hosts that join, one at a time over connections that carry nothing else yet. Any thread. */
#ifndef PSD_REAL_FRAME_H
#define PSD_REAL_FRAME_H

#include <stddef.h>

#include "real/net/wire.h"

struct psd_secret;

/* Sends a message. peer: its name in errors; secret: as in psd_mesh_options; payload: as psd_wire_encode_payload().
 * PSD_ELOST: the peer has gone. */
enum psd_status psd_frame_send(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       const void *payload, struct psd_error *err) PSD_MUST_CHECK;
/* Waits for a message of that kind. PSD_ELOST: the peer has gone, or is silent until until_sec.
 * PSD_ERUN: another message came. A peer that gives up: its own text and status. */
enum psd_status psd_frame_read(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       union psd_wire_payload *payload, double until_sec, struct psd_error *err) PSD_MUST_CHECK;

/* Waits for n_bytes. PSD_ELOST: the peer has gone, or is silent until until_sec. */
enum psd_status psd_frame_read_all(const char *peer, int fd, struct psd_secret *secret, uint8_t *bytes, size_t n_bytes,
				   double until_sec, struct psd_error *err) PSD_MUST_CHECK;

#endif
