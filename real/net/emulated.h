/* Decorator of connections, for a run on an emulated cluster: delivers each message only at the time at which the
 * emulated links would have brought it. It adds the latency that the real links lack, delays bursts that the kernel's
 * shaping lets through, and limits rates in this process where nothing else does. A run without emulation does not use
 * it and sends no bytes for it. Called by one thread. All hosts must share one clock, since a message carries its
 * times. */
#ifndef PSD_REAL_EMULATED_H
#define PSD_REAL_EMULATED_H

#include "real/net/connections.h"

struct psd_emulated;

struct psd_emulated_links {
	/* Per peer: true if the peer is on the same node; needed only while psd_emulated_open() runs. */
	const bool *is_near;
	bool has_rate; /* this process limits its own traffic to send_bps and receive_bps, because no link does */
	double send_bps, receive_bps;
	double pace_send_bps;	 /* payload rate of the outgoing emulated link, bits per second, see struct psd_pace */
	double pace_receive_bps; /* payload rate of the incoming emulated link, bits per second */
	double latency_sec;	 /* latency of a message in the emulated network */
	double had_latency_sec;	 /* latency that the real links already have; the difference to latency_sec is added */
};

/* Puts the decorator in front of the owner in *options, and in front of the carriers if this process limits its own
 * traffic. carriers: n_connections for each of n_peers peers. The caller closes *emulated after the connections.
 * *emulated is NULL, and nothing is changed, if there is nothing to emulate. PSD_ENOMEM. */
enum psd_status psd_emulated_open(struct psd_emulated **emulated, const struct psd_emulated_links *links,
				  struct psd_connections_options *options, struct psd_carrier carriers[],
				  struct psd_error *err) PSD_MUST_CHECK;
void psd_emulated_close(struct psd_emulated *emulated); /* frees the decorator; NULL is allowed */

#endif
