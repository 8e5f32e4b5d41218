/* Small messages over a connection on which nothing else travels yet, each of them awaited: what hosts tell each other
 * between greeting and beginning. Refuses to know what is in them. Any thread. */
#ifndef PSD_REAL_FRAME_H
#define PSD_REAL_FRAME_H

#include <stddef.h>

#include "real/net/wire.h"

struct psd_secret;

/* Of a kind whose payload always has n_bytes. peer: who is to read it; secret: of psd_mesh_options, as everywhere here.
 * PSD_ELOST: it has gone. */
enum psd_status psd_frame_send(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       const uint8_t *payload, size_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Waits for it. payload: has room for PSD_WIRE_SMALL_BYTES. PSD_ELOST: the peer went away or said nothing until
 * until_sec; PSD_ERUN: it sent anything else; it gives up: in its own words, with its own status. */
enum psd_status psd_frame_read(const char *peer, int fd, struct psd_secret *secret, enum psd_wire_kind kind,
			       uint8_t *payload, double until_sec, struct psd_error *err) PSD_MUST_CHECK;

/* Waits until n_bytes are read, at most until until_sec. PSD_ELOST: the peer went away or said nothing. */
enum psd_status psd_frame_read_all(const char *peer, int fd, struct psd_secret *secret, uint8_t *bytes, size_t n_bytes,
				   double until_sec, struct psd_error *err) PSD_MUST_CHECK;

#endif
