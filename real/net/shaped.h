/* A decorator around a carrier: no more bytes pass through it than a rate allows, where neither this machine's links
 * nor its kernel see to that. Nothing is added to what passes. Refuses to know messages. One thread. */
#ifndef PSD_REAL_SHAPED_H
#define PSD_REAL_SHAPED_H

#include "real/net/bucket.h"
#include "real/net/transport.h"

/* What all carriers of a host have together. Fields are private to shaped.c. */
struct psd_shaper {
	size_t grant_bytes;
	struct psd_bucket sends, reads;
};

void psd_shaper_init(struct psd_shaper *shaper, double send_bps, double receive_bps);
/* Puts the shaper, which outlives it, around a carrier that is not over. False: no memory; it is as it was. */
bool psd_shaped_wrap(struct psd_shaper *shaper, struct psd_carrier *carrier);

#endif
