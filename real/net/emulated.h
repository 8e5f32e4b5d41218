/* Delays messages for a run on an emulated cluster. Each message is delivered to the owner at the time at which the
 * emulated links would have carried it. This adds the latency that the real links lack, and delays bursts that the
 * kernel's rate limit lets pass too early. If nothing else limits the rates, this module does it, too. A run without
 * emulation does not use this module. Called by one thread. All hosts must share one clock, because the messages
 * contain times. */
#ifndef PSD_REAL_EMULATED_H
#define PSD_REAL_EMULATED_H

#include "real/net/connections.h"
#include "real/net/rate_limit.h"

struct psd_emulated;

struct psd_emulated_links {
	/* Array with one entry for each peer: true if the peer is on the same node. Read only by
	 * psd_emulated_open(). */
	const bool *is_near;
	/* This process limits its own traffic to send_bps and receive_bps; false: the links are limited already. */
	bool has_rate;
	double send_bps, receive_bps;
	/* Limit that the hosts of this node share, to which these rates are added. Must exist until
	 * psd_emulated_close(). NULL: this process keeps to its rates alone. */
	struct psd_rate_limit *shared_limit;
	double pace_send_bps;	 /* payload rate of the outgoing emulated link, bits per second, see struct psd_pace */
	double pace_receive_bps; /* payload rate of the incoming emulated link, bits per second */
	/* Array with one entry for each peer: one-way latency of its messages in the emulated network, seconds. Read
	 * only by psd_emulated_open(). */
	const double *latency_sec;
	/* Latency that the real links already have, seconds; latency_sec - had_latency_sec is added to each message. */
	double had_latency_sec;
};

/* Puts callbacks of its own before those of the owner in *options, so that messages are delayed. If has_rate, it also
 * replaces the carriers by carriers with a rate limit. carriers: n_connections for each of n_peers peers. The caller
 * closes *emulated after the connections. If there is nothing to emulate, *emulated is NULL and nothing is changed.
 * PSD_ENOMEM. */
enum psd_status psd_emulated_open(struct psd_emulated **emulated, const struct psd_emulated_links *links,
				  struct psd_connections_options *options, struct psd_carrier carriers[],
				  struct psd_error *err) PSD_MUST_CHECK;
void psd_emulated_close(struct psd_emulated *emulated); /* frees the state of this module; NULL is allowed */

#endif
