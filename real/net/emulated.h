/* Decorator of connections: delivers a message only when the links of an emulated cluster would have brought it. It
 * adds the missing latency, removes bursts that shaping lets through, and shapes where nothing else does. A run without
 * emulation does not use it and sends nothing for it. One thread; all hosts share one clock. */
#ifndef PSD_REAL_EMULATED_H
#define PSD_REAL_EMULATED_H

#include "real/net/connections.h"

struct psd_emulated;

struct psd_emulated_links {
	const bool *is_near; /* per peer: true for a host on the same node; borrowed during open */
	bool has_rate;	     /* shape the traffic in this process */
	double send_bps, receive_bps;
	double pace_send_bps, pace_receive_bps; /* send_bps and receive_bps of struct psd_pace */
	double latency_sec;			/* latency of the emulated network */
	double had_latency_sec; /* latency of the real links; only the difference to latency_sec is added */
};

/* Wraps the owner in *options, and the n_peers * n_connections carriers if traffic is shaped here. The caller closes
 * *emulated after the connections; NULL: nothing to emulate, nothing changed. PSD_ENOMEM. */
enum psd_status psd_emulated_open(struct psd_emulated **emulated, const struct psd_emulated_links *links,
				  struct psd_connections_options *options, struct psd_carrier carriers[],
				  struct psd_error *err) PSD_MUST_CHECK;
void psd_emulated_close(struct psd_emulated *emulated); /* frees the decorator; NULL is allowed */

#endif
