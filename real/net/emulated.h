/* A decorator around streams: what an emulated cluster's links would not have carried or brought yet is told of later.
 * They have a latency, and after a pause no burst, which all shaping needs; where nothing else shapes, it shapes, too.
 * In a run without emulation it is not there, and not a byte of it travels. One thread, and one clock for all hosts. */
#ifndef PSD_REAL_EMULATED_H
#define PSD_REAL_EMULATED_H

#include "real/net/connections.h"

struct psd_emulated;

struct psd_emulated_links {
	const bool *is_near; /* per peer: no link lies between; borrowed during open */
	bool has_rate;	     /* shape here */
	double send_bps, receive_bps;
	double pace_send_bps, pace_receive_bps; /* as in psd_pace */
	double latency_sec;			/* that an arrival must have */
	double had_latency_sec;			/* that links have by themselves; what is missing is added */
};

/* Puts itself around the owner in *options and, to shape, around the n_peers * n_connections carriers. *emulated: closed by
 * the caller after the streams; NULL: those links need none, and nothing was changed. PSD_ENOMEM. */
enum psd_status psd_emulated_open(struct psd_emulated **emulated, const struct psd_emulated_links *links,
				  struct psd_connections_options *options, struct psd_carrier carriers[],
				  struct psd_error *err) PSD_MUST_CHECK;
void psd_emulated_close(struct psd_emulated *emulated); /* NULL is allowed */

#endif
