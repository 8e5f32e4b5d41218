/* Decorator of a carrier: limits the rate at which it sends and receives, in this process, for clusters whose links are
 * not limited by the kernel. Adds no bytes. Knows no messages. One thread. */
#ifndef PSD_REAL_SHAPED_H
#define PSD_REAL_SHAPED_H

#include "real/net/link_model.h"
#include "real/net/transport.h"

/* Rate limit that all carriers of a host share. Fields are private to shaped.c. */
struct psd_shaper {
	size_t grant_bytes;
	struct psd_bucket sends, reads;
};

void psd_shaper_init(struct psd_shaper *shaper, double send_bps, double receive_bps);
/* Puts the shaper's limit on an open carrier. The shaper must exist until the carrier is closed. Returns false, with
 * the carrier unchanged, if memory runs out. */
bool psd_shaped_wrap(struct psd_shaper *shaper, struct psd_carrier *carrier);

#endif
