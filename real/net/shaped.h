/* Rate limit for carriers (connections): this process limits the rate at which a carrier sends and receives, for
 * clusters whose links are not limited by the kernel. It adds no bytes and reads no messages. One thread. */
#ifndef PSD_REAL_SHAPED_H
#define PSD_REAL_SHAPED_H

#include "real/net/link_model.h"
#include "real/net/transport.h"

/* Share of a link's rate that TCP's payload has in packets of 1500 bytes on Ethernet. */
#define PSD_SHAPED_PAYLOAD_RATIO (1448.0 / 1514.0)

/* Rate limit of one host: all its carriers together keep to it. Fields are private to shaped.c. */
struct psd_shaper {
	size_t grant_bytes;
	double (*clock_sec)(void); /* psd_socket_now_sec(); tests replace it */
	struct psd_bucket sends, reads;
};

void psd_shaper_init(struct psd_shaper *shaper, double send_bps, double receive_bps);
/* Puts the shaper's limit on an open carrier. The shaper must exist until the carrier is closed. Returns false if
 * memory runs out; then the carrier is unchanged. */
bool psd_shaped_wrap(struct psd_shaper *shaper, struct psd_carrier *carrier);

#endif
