/* Decorator of a carrier: limits its rate where neither links nor kernel do. Adds no bytes. Knows no messages. One
 * thread. */
#ifndef PSD_REAL_SHAPED_H
#define PSD_REAL_SHAPED_H

#include "real/net/link_model.h"
#include "real/net/transport.h"

/* Rate limit shared by all carriers of a host. Fields are private to shaped.c. */
struct psd_shaper {
	size_t grant_bytes;
	struct psd_bucket sends, reads;
};

void psd_shaper_init(struct psd_shaper *shaper, double send_bps, double receive_bps);
/* Puts the shaper in front of an open carrier, which it must outlive. Returns false, with the carrier unchanged, when
 * memory runs out. */
bool psd_shaped_wrap(struct psd_shaper *shaper, struct psd_carrier *carrier);

#endif
