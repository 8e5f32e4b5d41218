/* Rate limit for carriers (connections): this process limits the rate at which a carrier sends and receives, for
 * clusters whose links are not limited by the kernel. It adds no bytes and reads no messages. One thread. */
#ifndef PSD_REAL_SHAPED_H
#define PSD_REAL_SHAPED_H

#include "real/net/rate_limit.h"
#include "real/net/transport.h"

/* Limit of all carriers of one host. */
struct psd_shaper {
	struct psd_rate_limit *limit; /* the hosts of a node may share it */
	double (*clock_sec)(void);    /* psd_socket_now_sec(); tests replace it */
};

/* Puts the shaper's limit on an open carrier. The shaper must exist until the carrier is closed. Returns false if
 * memory runs out; then the carrier is unchanged. */
bool psd_shaped_wrap(struct psd_shaper *shaper, struct psd_carrier *carrier);

#endif
